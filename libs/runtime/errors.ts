/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The code of whatever was thrown, as Node's errors have one; null if it has none. */
export function codeOf(error: unknown): string | null {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : null
}

const MAX_CAUSES = 10

/** An error, its cause, the cause of that, and so on. */
export function causesOf(error: unknown): object[] {
  const causes: object[] = []
  let each = error
  while (causes.length < MAX_CAUSES && typeof each === 'object' && each !== null) {
    causes.push(each)
    each = 'cause' in each ? each.cause : null
  }
  return causes
}

/** Whether a thread ended because its heap was full. */
export function isOutOfMemory(error: unknown): boolean {
  return codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY'
}

/** An error that is named like its class. */
export abstract class NamedError extends Error {
  override readonly name: string = this.constructor.name
}

/** Another system is not ready yet, as during a normal start. Retried, and logged at level debug only. */
export class ExpectedRetryError extends NamedError {}

/**
 * A dependency of the process is unavailable or overloaded: the same call may succeed later. Every port has an error of
 * this class, so that callers that retry need not list them.
 */
export abstract class UnavailableError extends NamedError {}

/** Why the process can't start, and how to fix it. The process exits with this message as its only line. */
export class StartError extends NamedError {}
