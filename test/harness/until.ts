import { Backoff } from '#libs/runtime/timing.js'

/** More and more rarely: looking takes time from what is waited for. */
const LOOK_AGAIN = { firstMs: 10, maxMs: 50 }

/** Looks until there is something; fails, with what was waited for, when it takes too long. */
export async function until<Result>(
  what: string,
  look: () => Promise<Result | null | undefined | false> | Result | null | undefined | false,
  withinMs = 30_000,
): Promise<Result> {
  const deadline = Date.now() + withinMs
  const again = new Backoff(LOOK_AGAIN)
  const { signal } = new AbortController()
  for (;;) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`)
    await again.wait(signal)
  }
}
