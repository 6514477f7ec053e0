import type { Registry } from 'prom-client'
import { UnavailableError } from '#libs/runtime/errors.js'
import { sharedCounter } from './process/shared-counter.js'

/** Gives back what was taken. To call it twice does no harm. */
export type Release = () => void

export interface BudgetOptions {
  /** How much there is in all: bytes of memory, say, or pieces of work under way. */
  total: number
  /** The most that one owner holds. */
  perOwner: number
  /** The longest that anyone waits. */
  waitMs: number
  /** Called when someone has waited that long. */
  onExhausted?: () => void
}

/** What was asked for did not become free in time. */
export class BudgetExhaustedError extends UnavailableError {
  override readonly name = 'BudgetExhaustedError'
}

const NEVER_ABORTED = new AbortController().signal

interface Waiter {
  amount: number
  grant: (release: Release) => void
}

/**
 * A fixed amount, such as bytes of memory, that pieces of work take parts of. Each piece belongs to an owner, such as an
 * account. If too little is free, the work waits. Waiting owners are served in turn, so that an owner with a thousand
 * waiting requests delays another by one.
 */
export class Budget {
  private readonly held = new Map<string, number>()
  /** In the order of turns: an owner that was given something comes last. */
  private readonly waiting = new Map<string, Waiter[]>()
  private used = 0

  constructor(private readonly options: BudgetOptions) {}

  get inUse(): number {
    return this.used
  }

  /** Whether anyone waits. */
  get isContended(): boolean {
    return this.waiting.size > 0
  }

  /**
   * Resolves once the amount, a whole number, is the owner's; more than an owner may hold counts as that much. Throws
   * BudgetExhaustedError after the longest wait, and the signal's reason if that aborts first.
   */
  async take(owner: string, amount: number, signal = NEVER_ABORTED): Promise<Release> {
    signal.throwIfAborted()
    return this.tryTake(owner, amount) ?? this.wait(owner, this.counted(amount), signal)
  }

  /** As `take`, but returns null instead of waiting. */
  tryTake(owner: string, amount: number): Release | null {
    const taken = this.counted(amount)
    return !this.isContended && this.fits(owner, taken) ? this.give(owner, taken) : null
  }

  private counted(amount: number): number {
    const { perOwner, total } = this.options
    return Math.min(amount, Math.floor(perOwner), Math.floor(total))
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
      // It may have been the one that others had to wait for.
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

  /** Serves those that wait, one per owner in turn. Stops at one that does not fit: smaller ones would starve it. */
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
    return (this.held.get(owner) ?? 0) + amount <= this.options.perOwner
  }

  private add(owner: string, more: number): void {
    this.used += more
    const held = (this.held.get(owner) ?? 0) + more
    if (held === 0) this.held.delete(owner)
    else this.held.set(owner, held)
  }
}

/** Returns how to count, by the budget's name, that somebody has waited too long for it. Roles may share a registry. */
export function countExhausted(registry: Registry): (budget: string) => void {
  const counter = sharedCounter(registry, {
    name: 'mayfly_budget_exhausted_total',
    help: 'Pieces of work that waited too long for what accounts share, by the name of the budget.',
    labelNames: ['budget'],
  })
  return (budget) => counter.inc({ budget })
}

/** Gives a slot back. To call it twice does no harm. */
export type Leave = () => void

interface Slot {
  giveUp: () => boolean
}

/** The slots of one owner, by part of it; those taken first come first. */
type Held = Map<string, Set<Slot>>

/** How many of one owner's slots are asked to be given up before the newcomer is refused. */
const MAX_ASKED = 100

/**
 * Slots that owners hold for as long as they like, such as connections and waits. All of them may be one owner's, but
 * once none is free, an owner that holds fewer takes one from the owner that holds the most, until they hold the same.
 */
export class SharedSlots {
  private readonly owners = new Map<string, Held>()
  private count = 0

  constructor(private readonly max: number) {}

  get taken(): number {
    return this.count
  }

  /**
   * Returns null if there is no slot for this owner and part of it, such as an account and its key that asks.
   * `giveUp` is called when another owner or part wants the slot; if it returns true, the slot is that one's at once.
   */
  take([owner, part = '']: [owner: string, part?: string], giveUp: () => boolean): Leave | null {
    if (this.count >= this.max && !this.freeOne(owner, part)) return null
    const slot = { giveUp }
    const held: Held = this.owners.get(owner) ?? new Map<string, Set<Slot>>()
    this.owners.set(owner, held.set(part, (held.get(part) ?? new Set()).add(slot)))
    this.count += 1
    return () => this.leave(owner, part, slot)
  }

  /** Has the owner that holds the most give up a slot, or within this owner the part that holds the most. */
  private freeOne(owner: string, part: string): boolean {
    const own: Held = this.owners.get(owner) ?? new Map<string, Set<Slot>>()
    const [largestOwner, held] = largest(this.owners, countOf) ?? [owner, own]
    if (countOf(held) > countOf(own) + 1) return this.takeFrom(largestOwner, held)
    const partMax = largest(own, ({ size }) => size)?.[1].size ?? 0
    return partMax > (own.get(part)?.size ?? 0) + 1 && this.takeFrom(owner, own)
  }

  /**
   * Has the part that holds the most give up the first slot that it can. Slots that it can't give up now come last
   * the next time.
   */
  private takeFrom(owner: string, held: Held): boolean {
    const [part, slots] = largest(held, ({ size }) => size) ?? ['', new Set<Slot>()]
    let asked = 0
    for (const slot of slots) {
      if (slot.giveUp()) {
        this.leave(owner, part, slot)
        return true
      }
      slots.delete(slot)
      slots.add(slot)
      asked += 1
      if (asked === Math.min(slots.size, MAX_ASKED)) break
    }
    return false
  }

  private leave(owner: string, part: string, slot: Slot): void {
    const held = this.owners.get(owner)
    const slots = held?.get(part)
    if (held === undefined || slots?.delete(slot) !== true) return
    this.count -= 1
    if (slots.size === 0) held.delete(part)
    if (held.size === 0) this.owners.delete(owner)
  }
}

function countOf(held: Held): number {
  let count = 0
  for (const { size } of held.values()) count += size
  return count
}

/** The entry of which `sizeOf` is the most; null if there is none. */
function largest<Value>(
  entries: ReadonlyMap<string, Value>,
  sizeOf: (value: Value) => number,
): [string, Value] | null {
  let [found, size]: [[string, Value] | null, number] = [null, -1]
  for (const entry of entries) {
    const its = sizeOf(entry[1])
    if (its > size) [found, size] = [entry, its]
  }
  return found
}
