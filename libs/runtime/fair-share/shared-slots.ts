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
