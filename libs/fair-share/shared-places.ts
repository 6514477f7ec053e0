/** Gives a place back. To call it twice does no harm. */
export type Leave = () => void

interface Place {
  giveUp: () => boolean
}

/** The places of a widest owner, by the narrower one; those taken first come first. */
type Held = Map<string, Set<Place>>

/** Of one owner's places: so many are asked to be given up before the newcomer is refused. */
const MAX_ASKED = 100

/**
 * Places that owners hold for as long as they like, such as connections and waits. All of them may be one owner's, but
 * once none is free, an owner that holds fewer takes one from the owner that holds the most, until they hold the same.
 */
export class SharedPlaces {
  private readonly owners = new Map<string, Held>()
  private count = 0

  constructor(private readonly max: number) {}

  get taken(): number {
    return this.count
  }

  /**
   * Null if there is no place for these owners: an account, say, and its key that asks. `giveUp` is called when the
   * place is wanted for another owner; where it answers true, the place is the other's at once.
   */
  take([widest, narrower = '']: [widest: string, narrower?: string], giveUp: () => boolean): Leave | null {
    if (this.count >= this.max && !this.makeRoom(widest, narrower)) return null
    const place = { giveUp }
    const held: Held = this.owners.get(widest) ?? new Map<string, Set<Place>>()
    this.owners.set(widest, held.set(narrower, (held.get(narrower) ?? new Set()).add(place)))
    this.count += 1
    return () => this.leave(widest, narrower, place)
  }

  private makeRoom(widest: string, narrower: string): boolean {
    const own: Held = this.owners.get(widest) ?? new Map<string, Set<Place>>()
    const [greediest, held] = largest(this.owners, countOf) ?? [widest, own]
    if (countOf(held) > countOf(own) + 1) return this.takeFrom(greediest, held)
    const mostOfOne = largest(own, ({ size }) => size)?.[1].size ?? 0
    return mostOfOne > (own.get(narrower)?.size ?? 0) + 1 && this.takeFrom(widest, own)
  }

  /** Has the narrower owner that holds the most give up the first place that it can. */
  private takeFrom(widest: string, held: Held): boolean {
    const [narrower, places] = largest(held, ({ size }) => size) ?? ['', new Set<Place>()]
    const found = [...places].slice(0, MAX_ASKED).find(({ giveUp }) => giveUp())
    if (found !== undefined) this.leave(widest, narrower, found)
    return found !== undefined
  }

  private leave(widest: string, narrower: string, place: Place): void {
    const held = this.owners.get(widest)
    const places = held?.get(narrower)
    if (held === undefined || places?.delete(place) !== true) return
    this.count -= 1
    if (places.size === 0) held.delete(narrower)
    if (held.size === 0) this.owners.delete(widest)
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
