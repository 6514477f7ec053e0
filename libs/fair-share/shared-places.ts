/** Gives a place back. To call it twice does no harm. */
export type Leave = () => void

/** What an owner may hold, measured against the places still free: the widest owner first, then those within it. */
const SHARES = [1, 2 / 3] as const

/**
 * Places that owners hold for as long as they like, such as connections and waits. An owner is given one while it holds
 * fewer than are free: alone it comes to half of all places, and two to a third each, so that there is always one for
 * who holds none. A narrower owner, such as one key of an account, gets two thirds of that.
 */
export class SharedPlaces {
  private readonly held = new Map<string, number>()
  private count = 0

  constructor(private readonly most: number) {}

  get taken(): number {
    return this.count
  }

  /** Null if there is no place for these owners: an account, say, and the key that asks. Their ids must differ. */
  take(...owners: [widest: string, ...narrower: string[]]): Leave | null {
    const free = this.most - this.count
    const mayTake = owners.every((owner, index) => (this.held.get(owner) ?? 0) < free * (SHARES[index] ?? 1))
    if (!mayTake) return null
    this.add(owners, 1)
    let hasLeft = false
    return () => {
      if (!hasLeft) this.add(owners, -1)
      hasLeft = true
    }
  }

  private add(owners: readonly string[], more: 1 | -1): void {
    this.count += more
    for (const owner of owners) {
      const held = (this.held.get(owner) ?? 0) + more
      if (held === 0) this.held.delete(owner)
      else this.held.set(owner, held)
    }
  }
}
