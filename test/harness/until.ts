import { setTimeout as pause } from 'node:timers/promises'

const LOOK_EVERY_MS = 10

/** Looks until there is something; fails, with what was waited for, when it takes too long. */
export async function until<Result>(
  what: string,
  look: () => Promise<Result | null | undefined | false> | Result | null | undefined | false,
  withinMs = 10_000,
): Promise<Result> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`)
    await pause(LOOK_EVERY_MS)
  }
}
