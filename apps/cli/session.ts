import type { ApiClient } from './api-client.js'

/** Used by commands. Created when one runs, so that help and errors of the command line need no key. */
export interface Session {
  api(): ApiClient
  /** Prints the result of a command: as JSON with --json, otherwise as text for people. */
  print(result: unknown, inWords: () => string): void
  /** Prints bytes or text unchanged, and nothing else. */
  write(content: Uint8Array | string): void
  /** The same for a stream, with backpressure. */
  writeAll(content: AsyncIterable<Uint8Array>): Promise<void>
  /** Whether the output is a terminal. */
  readonly isTerminal: boolean
}
