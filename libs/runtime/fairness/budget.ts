import type { Registry } from 'prom-client'
import { UnavailableError } from '#libs/runtime/errors.js'
import { sharedCounter } from '#libs/runtime/process/shared-counter.js'
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

const NEVER_ABORTED = new AbortController().signal

interface Waiter {
  amount: number
  grant: (release: Release) => void
}

/**
 * A fixed amount of a resource, such as memory, that is shared by owners, such as accounts. If too little is free, work
 * waits. Waiting owners are served in turn, so that an owner with a thousand waiting requests delays another owner by
 * one.
 */
export class Budget {
  private readonly held = new Map<string, number>()
  /** In the order of turns: an owner that was served moves to the end. */
  private readonly waiting = new Map<string, Waiter[]>()
  private readonly recent = new RecentOwners()
  private used = 0

  constructor(private readonly options: BudgetOptions) {}

  get inUse(): number {
    return this.used
  }

  /** Whether any owner is waiting. */
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
    const waiter: Waiter = { amount, grant: resolve }
    const queue = this.waiting.get(owner)
    if (queue === undefined) this.waiting.set(owner, [waiter])
    else queue.push(waiter)
    this.serve()
    const leave = (error: unknown) => {
      this.forget(owner, waiter)
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
    for (let owners = [...this.waiting.keys()]; owners.length > 0;) {
      const served: string[] = []
      for (const owner of owners) {
        const [first] = this.waiting.get(owner) ?? []
        if (first === undefined || !this.fitsOwner(owner, first.amount)) continue
        if (!this.fits(owner, first.amount)) return
        this.forget(owner, first)
        this.toEnd(owner)
        first.grant(this.give(owner, first.amount))
        served.push(owner)
      }
      owners = served
    }
  }

  private forget(owner: string, waiter: Waiter): void {
    const queue = this.waiting.get(owner) ?? []
    if (queue.includes(waiter)) queue.splice(queue.indexOf(waiter), 1)
    if (queue.length === 0) this.waiting.delete(owner)
  }

  private toEnd(owner: string): void {
    const queue = this.waiting.get(owner)
    if (queue === undefined) return
    this.waiting.delete(owner)
    this.waiting.set(owner, queue)
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
  const counter = sharedCounter(registry, {
    name: 'mayfly_budget_exhausted_total',
    help: 'Tasks that waited too long for a resource that accounts share, by the name of its budget.',
    labelNames: ['budget'],
  })
  return (budget) => counter.inc({ budget })
}
