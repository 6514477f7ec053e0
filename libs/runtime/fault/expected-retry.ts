/** Another system is not ready yet, as in any healthy start: retried, and worth a debug line only. */
export class ExpectedRetryError extends Error {
  override readonly name = 'ExpectedRetryError'
}
