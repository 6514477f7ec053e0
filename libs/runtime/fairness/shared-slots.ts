import type { Release } from './budget.js'

interface Slot {
  giveUp: () => boolean
}

/** The slots of one owner by part, in the order in which they were taken. */
type Held = Map<string, Set<Slot>>

/** The maximum number of holders that are asked to give up their slot before a new request is refused. */
const MAX_GIVE_UP_REQUESTS = 100

/**
 * A number of slots that owners may hold without a time limit, such as connections. One owner may hold all of them. When
 * none is free, an owner with fewer slots takes one from the owner with the most, until both hold the same number.
 */
export class SharedSlots {
  private readonly owners = new Map<string, Held>()
  private count = 0

  constructor(private readonly max: number) {}

  get taken(): number {
    return this.count
  }

  /**
   * Takes a slot for a part of an owner, such as a key of an account; returns null if there is none. `giveUp` is called
   * when another owner or part needs the slot: if it returns true, the slot is transferred at once.
   */
  take([owner, part = '']: [owner: string, part?: string], giveUp: () => boolean): Release | null {
    if (this.count >= this.max && !this.freeOne(owner, part)) return null
    const slot = { giveUp }
    const held: Held = this.owners.get(owner) ?? new Map<string, Set<Slot>>()
    this.owners.set(owner, held.set(part, (held.get(part) ?? new Set()).add(slot)))
    this.count += 1
    return () => this.leave(owner, part, slot)
  }

  /** Frees a slot of the owner that holds the most or, within this owner, of the part that holds the most. */
  private freeOne(owner: string, part: string): boolean {
    const own: Held = this.owners.get(owner) ?? new Map<string, Set<Slot>>()
    const [largestOwner, held] = largest(this.owners, countOf) ?? [owner, own]
    if (countOf(held) > countOf(own) + 1) return this.takeFrom(largestOwner, held)
    const partMax = largest(own, ({ size }) => size)?.[1].size ?? 0
    return partMax > (own.get(part)?.size ?? 0) + 1 && this.takeFrom(owner, own)
  }

  /**
   * Frees the first slot of the largest part whose holder can give it up. Slots that can't be given up now are tried last
   * the next time.
   */
  private takeFrom(owner: string, held: Held): boolean {
    const [part, slots] = largest(held, ({ size }) => size) ?? ['', new Set<Slot>()]
    let requests = 0
    for (const slot of slots) {
      if (slot.giveUp()) {
        this.leave(owner, part, slot)
        return true
      }
      slots.delete(slot)
      slots.add(slot)
      requests += 1
      if (requests === Math.min(slots.size, MAX_GIVE_UP_REQUESTS)) break
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
