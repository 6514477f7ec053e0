import { setTimeout as pause } from 'node:timers/promises'

/** Look-ups begin at least that far apart, so that any number of callers costs the brokers little. */
const APART_MS = 5

/**
 * Gives each caller an answer that was asked for after its call, never one that was under way by then: a caller
 * sees what it appended before. All who wait share the next look-up.
 */
export class SharedLookup<Answer> {
  private next: Promise<Answer> | null = null
  private underWay: Promise<unknown> = Promise.resolve()
  private begunAt = 0

  constructor(private readonly ask: () => Promise<Answer>) {}

  get(): Promise<Answer> {
    this.next ??= this.askNext()
    return this.next
  }

  private async askNext(): Promise<Answer> {
    await Promise.allSettled([this.underWay])
    const early = this.begunAt + APART_MS - Date.now()
    if (early > 0) await pause(early)
    this.next = null
    this.begunAt = Date.now()
    const asked = this.ask()
    this.underWay = asked
    return asked
  }
}
