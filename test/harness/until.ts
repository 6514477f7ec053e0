import { Backoff } from '#libs/runtime/timing.js'

/** The pause grows, because polling takes CPU time from the code under test. */
const POLL_PAUSE = { firstMs: 10, maxMs: 50 }

/** Polls until `look` returns a result. Rejects after `withinMs`, naming `what`. */
export async function until<Result>(
  what: string,
  look: () => Promise<Result | null | undefined | false> | Result | null | undefined | false,
  withinMs = 30_000,
): Promise<Result> {
  const deadline = Date.now() + withinMs
  const again = new Backoff(POLL_PAUSE)
  const { signal } = new AbortController()
  for (;;) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    if (Date.now() > deadline) throw new Error(`timed out after ${withinMs} ms waiting for ${what}`)
    await again.wait(signal)
  }
}
