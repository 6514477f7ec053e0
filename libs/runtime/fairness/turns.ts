import { FairQueue } from './fair-queue.js'

/** Pieces of work that start in one turn of the event loop, while the turns are short. */
const MAX_STARTS = 32
/** No more pieces start in a turn after this time. A turn that takes longer lets fewer start in the next one. */
const TURN_MS = 4

/**
 * Starts pieces of work a few at a time, so that a thousand which become ready at once don't keep everything else
 * waiting. Owners take turns, however many pieces each has. How many pieces start in a turn of the event loop follows from
 * how long the last turns took, since most of the work of a piece is done after its start.
 */
export class Turns {
  private readonly waiting = new FairQueue<() => void>()
  private startsPerTurn = MAX_STARTS
  private startsLeft = MAX_STARTS
  private beganMs = 0
  private isScheduled = false

  /** Calls `start` when it is the owner's turn: at once if nothing waits, and little has started in this turn. */
  run(owner: string, start: () => void): void {
    if (!this.isScheduled) this.schedule()
    this.waiting.add(owner, start)
    this.startWaiting()
  }

  private schedule(): void {
    this.isScheduled = true
    this.beganMs = performance.now()
    setImmediate(() => this.nextTurn())
  }

  private nextTurn(): void {
    const isLong = performance.now() - this.beganMs > TURN_MS
    this.startsPerTurn = isLong
      ? Math.ceil(this.startsPerTurn / 2)
      : Math.min(this.startsPerTurn + 1, MAX_STARTS)
    this.startsLeft = this.startsPerTurn
    if (this.waiting.size === 0) this.isScheduled = false
    else {
      this.schedule()
      this.startWaiting()
    }
  }

  private startWaiting(): void {
    while (this.startsLeft > 0 && performance.now() - this.beganMs < TURN_MS) {
      const start = this.waiting.take(() => true)
      if (start === null) return
      this.startsLeft -= 1
      start()
    }
  }
}
