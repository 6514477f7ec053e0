import type { ApiClient } from './api-client.js'

/** What a command works with: made when one runs, so that help and faults of the command line need no key. */
export interface Session {
  api(): ApiClient
  /** Prints what came of a command: as JSON where that is asked for, else in words for people. */
  print(result: unknown, inWords: () => string): void
  /** Prints bytes or text as they are, and nothing else. */
  write(content: Uint8Array | string): void
  /** The same, as fast as it is taken. */
  writeAll(content: AsyncIterable<Uint8Array>): Promise<void>
  /** Whether a person sees what is printed. */
  readonly isTerminal: boolean
}
