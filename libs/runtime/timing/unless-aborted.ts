/** Settles as what is wanted does; rejects with the signal's reason if that aborts first, and what is wanted goes on. */
export async function unlessAborted<Result>(wanted: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([wanted, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
