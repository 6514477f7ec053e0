import { performance } from 'node:perf_hooks'
import type { Release } from './budget.js'
import { FairQueue } from './fair-queue.js'
import { RecentOwners } from './recent-owners.js'

/** Pieces of work of an owner in progress at once, if another owner had work in the last minute. */
const MAX_OPEN = 4
/** Work that takes longer waits for something else, such as memory, which has a limit of its own. */
const LONG_MS = 100
/** An owner that has used this much more than its share may have only a part of its pieces in progress at once. */
const BUSY_MS = 10
const BUSY_PART = 1 / 4
/** One that has used this much more than another owner, which has work or had some in the last CONTENDED_MS, starts nothing. */
const MAX_DEBT_MS = 40
const CONTENDED_MS = 250
/** Older work does not count, so that an owner that was alone is not stopped for long when another one comes. */
const REMEMBERED_DEBT_MS = 200
/** The share of the main thread's time that busy owners have together. They may use more while no other has work. */
const SHARE = 1 / 3
const SERVE_EVERY_MS = 5
const COUNT_EVERY_MS = 1

interface Owner {
  open: number
  /** When the last pieces started, at most MAX_OPEN of them. */
  startsMs: number[]
  /** The time that the owner has used in excess of its share. */
  debtMs: number
  /** When it last had new work. */
  askedAtMs: number
}

/**
 * Shares the time of the main thread among owners. The time that it is busy is counted for the owners that have work in
 * progress. One that uses more than its share waits before it starts more, so that the work of others, each piece of which
 * needs many turns of the event loop, is done in between. An owner that is alone never waits
 * (docs/decisions/requests-take-turns.md).
 */
export class TimeShares {
  private readonly owners = new Map<string, Owner>()
  private readonly recent = new RecentOwners()
  private readonly waiting = new FairQueue<{
    state: Owner
    maxOpen: number
    grant: (release: Release) => void
  }>()
  private open = 0
  /** The owners of work that has just started, and runs until it first waits for something. */
  private starting: Owner[] = []
  private countedAtMs = performance.now()
  private busyMs = busyMs()
  /** Of the owners that have work, or had some in the last CONTENDED_MS. */
  private leastDebtMs = 0
  private timer: NodeJS.Timeout | null = null

  /**
   * Resolves when the owner may start a piece of work. It must be released once the work is done, or waits for long.
   * `maxOpen` replaces MAX_OPEN, for work that mostly waits.
   */
  async take(owner: string, maxOpen = MAX_OPEN): Promise<Release> {
    const askedAtMs = performance.now()
    this.recent.record(owner, askedAtMs)
    const state = this.owners.get(owner) ?? { open: 0, startsMs: [], debtMs: 0, askedAtMs }
    this.owners.set(owner, state)
    state.askedAtMs = askedAtMs
    this.count()
    this.leastDebtMs = Math.min(this.leastDebtMs, state.debtMs)
    if (!this.waiting.has(owner) && this.mayStart(owner, state, maxOpen)) return this.start(state)
    const { promise, resolve: grant } = Promise.withResolvers<Release>()
    this.waiting.add(owner, { state, maxOpen, grant })
    this.timer ??= setInterval(() => this.serve(), SERVE_EVERY_MS).unref()
    return promise
  }

  private mayStart(owner: string, { open, startsMs, debtMs }: Owner, maxOpen: number): boolean {
    const nowMs = performance.now()
    if (this.recent.isAlone(owner, nowMs)) return true
    if (debtMs - this.leastDebtMs > MAX_DEBT_MS) return false
    const max = debtMs > BUSY_MS ? Math.ceil(maxOpen * BUSY_PART) : maxOpen
    return open < max || nowMs - (startsMs.at(-max) ?? nowMs) > LONG_MS
  }

  private start(state: Owner): Release {
    state.open += 1
    this.open += 1
    // Runs when no promise is left to go on with.
    if (this.starting.push(state) === 1) queueMicrotask(() => process.nextTick(() => this.endStarting()))
    if (state.startsMs.push(performance.now()) > MAX_OPEN) state.startsMs.shift()
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.count()
      state.open -= 1
      this.open -= 1
      if (this.waiting.size > 0) setImmediate(() => this.serve())
    }
  }

  private endStarting(): void {
    this.count()
    this.starting = []
  }

  private serve(): void {
    this.count()
    const take = () => this.waiting.take(({ state, maxOpen }, owner) => this.mayStart(owner, state, maxOpen))
    for (let next = take(); next !== null; next = take()) next.grant(this.start(next.state))
    if (this.waiting.size > 0 || this.timer === null) return
    clearInterval(this.timer)
    this.timer = null
  }

  /** Counts the time since the last call for the owners whose work is starting, or else in progress, each by its pieces. */
  private count(): void {
    const nowMs = performance.now()
    const sinceMs = nowMs - this.countedAtMs
    if (sinceMs < COUNT_EVERY_MS) return
    const busy = busyMs()
    const usedMs = busy - this.busyMs
    const inDebt = [...this.owners.values()].filter(({ debtMs }) => debtMs > BUSY_MS).length
    const paidMs = (sinceMs * SHARE) / Math.max(inDebt, 1)
    this.countedAtMs = nowMs
    this.busyMs = busy
    this.leastDebtMs = Infinity
    const { starting } = this
    for (const [name, owner] of this.owners) {
      const started = starting.filter((each) => each === owner).length
      const part = starting.length > 0 ? started / starting.length : owner.open / Math.max(this.open, 1)
      const debtMs = owner.debtMs + usedMs * part - paidMs
      owner.debtMs = Math.min(Math.max(debtMs, 0), REMEMBERED_DEBT_MS)
      const hasWork = owner.open > 0 || this.waiting.has(name) || nowMs - owner.askedAtMs < CONTENDED_MS
      if (hasWork) this.leastDebtMs = Math.min(this.leastDebtMs, owner.debtMs)
      else if (owner.debtMs === 0) this.owners.delete(name)
    }
  }
}

/** Of this process: requests and attempts of webhooks share it. */
export const mainThread = new TimeShares()

/** The time that the event loop has been busy. */
function busyMs(): number {
  return performance.eventLoopUtilization().active
}
