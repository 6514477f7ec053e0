/** No answer came in time; what was asked for may have been done, or be done yet. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

/** What was asked for; rejects with DeadlineError if it does not come in time. */
export async function beforeDeadline<Result>(ms: number, asked: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new DeadlineError(`no answer within ${ms / 1_000} s`)), ms)
  try {
    return await Promise.race([asked, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
