import { setTimeout as pause } from 'node:timers/promises'

/** More and more rarely: looking takes time from what is waited for. */
const PAUSE = { firstMs: 10, growth: 1.3, mostMs: 50 }

/** Looks until there is something; fails, with what was waited for, when it takes too long. */
export async function until<Result>(
  what: string,
  look: () => Promise<Result | null | undefined | false> | Result | null | undefined | false,
  withinMs = 30_000,
): Promise<Result> {
  const deadline = Date.now() + withinMs
  for (let pauseMs = PAUSE.firstMs; ; pauseMs = Math.min(pauseMs * PAUSE.growth, PAUSE.mostMs)) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`)
    await pause(pauseMs)
  }
}
