export interface FuzzRun {
  endsAtMs: number
  /** Ends early after about that many inputs. */
  mostInputs?: number
  /** Determines all inputs. */
  seed: number
  /** Folder for inputs that failed. */
  folder: string
  say: (line: string) => void
}

/** Fuzzes a target until the time is up. Resolves with the number of inputs that failed. */
export type FuzzTarget = (run: FuzzRun) => Promise<number>
