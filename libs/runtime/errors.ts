/** What was thrown, in words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Another system is not ready yet, as in any healthy start: retried, and worth a debug line only. */
export class ExpectedRetryError extends Error {
  override readonly name = 'ExpectedRetryError'
}

/**
 * Something that the process depends on is out of reach or too busy: the same call may succeed later. Every port has an error
 * of this kind, so that callers who wait or try again need not know them one by one.
 */
export abstract class UnavailableError extends Error {}

/** What keeps an engine from being opened, and what to do: the process ends with that one line. */
export class StartError extends Error {
  override readonly name: string = 'StartError'
}
