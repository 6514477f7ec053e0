export interface FuzzRun {
  endsAtMs: number
  /** What it does follows from it. */
  seed: number
  /** Where inputs that failed are kept. */
  folder: string
  say: (line: string) => void
}

/** Fuzzes an entrance until it is time; resolves with how many inputs failed. */
export type FuzzTarget = (run: FuzzRun) => Promise<number>
