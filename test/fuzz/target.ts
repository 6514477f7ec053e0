export interface FuzzRun {
  endsAtMs: number
  /** Ends sooner, once about so many inputs have been tried; no matter how many unless said so. */
  mostInputs?: number
  /** What it does follows from it. */
  seed: number
  /** Where inputs that failed are kept. */
  folder: string
  say: (line: string) => void
}

/** Fuzzes an entrance until it is time; resolves with how many inputs failed. */
export type FuzzTarget = (run: FuzzRun) => Promise<number>
