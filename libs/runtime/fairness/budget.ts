import type { Registry } from 'prom-client'
import { UnavailableError } from '#libs/runtime/errors.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { FairQueue } from './fair-queue.js'
import { RecentOwners } from './recent-owners.js'

/** Returns what was taken. Calling it again has no effect. */
export type Release = () => void

export interface BudgetOptions {
  /** The whole amount, for example in bytes of memory or in concurrent tasks. */
  total: number
  /** The maximum that one owner may hold. */
  perOwner: number
  /** The same while no other owner has taken anything for a minute; `perOwner` if undefined. */
  perOwnerAlone?: number
  /** The longest time to wait for an amount. */
  waitMs: number
  /** Called when a wait has taken that long. */
  onExhausted?: () => void
}

/** The amount did not become free in time. */
export class BudgetExhaustedError extends UnavailableError {
  override readonly name = 'BudgetExhaustedError'
}

export const NEVER_ABORTED = new AbortController().signal

interface Waiter {
  owner: string
  amount: number
  grant: (release: Release) => void
  /** Whether it waits no longer, because of a timeout or an abort. */
  hasLeft: boolean
}

/**
 * A fixed amount of a resource, such as memory, that is shared by owners, such as accounts. If too little is free, work
 * waits. Waiting owners are served in turn, so that an owner with a thousand waiting requests delays another owner by
 * one.
 */
export class Budget {
  private readonly held = new Map<string, number>()
  private readonly waiting = new FairQueue<Waiter>()
  private readonly recent = new RecentOwners()
  private used = 0

  constructor(private readonly options: BudgetOptions) {}

  get inUse(): number {
    return this.used
  }

  get isContended(): boolean {
    return this.waiting.size > 0
  }

  /**
   * Resolves once the owner holds the amount, a whole number. An amount above an owner's maximum is reduced to it. Throws
   * BudgetExhaustedError after `waitMs`, or the signal's reason if it aborts first.
   */
  async take(owner: string, amount: number, signal = NEVER_ABORTED): Promise<Release> {
    signal.throwIfAborted()
    return this.tryTake(owner, amount) ?? this.wait(owner, this.counted(owner, amount), signal)
  }

  /** Like `take`, but resolves with null after `waitMs`, or if the signal aborts. */
  async takeOrNull(owner: string, amount: number, signal = NEVER_ABORTED): Promise<Release | null> {
    try {
      return await this.take(owner, amount, signal)
    } catch (error) {
      if (error instanceof BudgetExhaustedError || signal.aborted) return null
      throw error
    }
  }

  /** Like `take`, but returns null instead of waiting. */
  tryTake(owner: string, amount: number): Release | null {
    this.recent.record(owner, performance.now())
    const taken = this.counted(owner, amount)
    return !this.isContended && this.fits(owner, taken) ? this.give(owner, taken) : null
  }

  private counted(owner: string, amount: number): number {
    return Math.min(amount, Math.floor(this.maxOf(owner)), Math.floor(this.options.total))
  }

  private async wait(owner: string, amount: number, signal: AbortSignal): Promise<Release> {
    const { promise, resolve, reject } = Promise.withResolvers<Release>()
    const waiter: Waiter = { owner, amount, grant: resolve, hasLeft: false }
    this.waiting.add(owner, waiter)
    this.serve()
    const leave = (error: unknown) => {
      waiter.hasLeft = true
      reject(error instanceof Error ? error : new Error(String(error)))
      // Others may have been waiting for this one.
      this.serve()
    }
    const abort = () => leave(signal.reason)
    const timer = setTimeout(() => {
      this.options.onExhausted?.()
      leave(new BudgetExhaustedError())
    }, this.options.waitMs).unref()
    signal.addEventListener('abort', abort, { once: true })
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  private give(owner: string, amount: number): Release {
    this.add(owner, amount)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.add(owner, -amount)
      this.serve()
    }
  }

  /** Serves one waiter of each owner in turn. Stops at the first that does not fit, so that smaller ones don't starve it. */
  private serve(): void {
    let isBlocked = false
    const mayServe = ({ owner, amount, hasLeft }: Waiter) => {
      if (hasLeft) return true
      if (isBlocked || !this.fitsOwner(owner, amount)) return false
      isBlocked = !this.fits(owner, amount)
      return !isBlocked
    }
    for (let next = this.waiting.take(mayServe); next !== null; next = this.waiting.take(mayServe)) {
      if (!next.hasLeft) next.grant(this.give(next.owner, next.amount))
    }
  }

  private fits(owner: string, amount: number): boolean {
    return this.fitsOwner(owner, amount) && this.used + amount <= this.options.total
  }

  private fitsOwner(owner: string, amount: number): boolean {
    const held = this.held.get(owner) ?? 0
    return held === 0 || held + amount <= this.maxOf(owner)
  }

  private maxOf(owner: string): number {
    const { perOwner, perOwnerAlone = perOwner } = this.options
    return this.recent.isAlone(owner, performance.now()) ? perOwnerAlone : perOwner
  }

  private add(owner: string, more: number): void {
    this.used += more
    const held = (this.held.get(owner) ?? 0) + more
    if (held === 0) this.held.delete(owner)
    else this.held.set(owner, held)
  }
}

/** Returns a function that counts, by budget name, waits that took too long. Roles may share a registry. */
export function countExhausted(registry: Registry): (budget: string) => void {
  const counter = new Metrics(registry).counter(
    'mayfly_budget_exhausted_total',
    'Tasks that waited too long for a resource that accounts share, by the name of its budget.',
    ['budget'],
  )
  return (budget) => counter.inc({ budget })
}
