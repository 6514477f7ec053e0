/** Counts bytes held at once against a limit. */
export class MemoryBudget {
  private held = 0

  constructor(private readonly limit: number) {}

  hasRoomFor(bytes: number): boolean {
    return this.held + bytes <= this.limit
  }

  /** Whether the bytes were taken; who took them gives them back. */
  tryTake(bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) return false
    this.held += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.held -= bytes
  }
}

/** Where bytes are taken from and given back to. */
export type Budget = Pick<MemoryBudget, 'tryTake' | 'giveBack'>

/** One of those who share a budget. */
export interface Sharer {
  memory: BudgetShare
  /** What may be asked to give its bytes back, in this order. */
  incoming: Set<{ dropForMemory: () => void }>
}

/**
 * The part of a budget that one sharer may take: what is taken here counts in both. When the whole is full, the sharer
 * with the most gives bytes back to one that holds fewer.
 */
export class BudgetShare {
  private held = 0

  constructor(
    private readonly limit: number,
    private readonly whole: MemoryBudget,
    private readonly sharers: () => Iterable<Sharer>,
  ) {}

  get bytes(): number {
    return this.held
  }

  hasRoomFor(bytes: number): boolean {
    if (this.held + bytes > this.limit) return false
    return this.whole.hasRoomFor(bytes) || this.largerThan(this.held + bytes) !== null
  }

  /** Whether the bytes were taken; who took them gives them back. */
  tryTake(bytes: number): boolean {
    if (this.held + bytes > this.limit) return false
    while (!this.whole.tryTake(bytes)) {
      const larger = this.largerThan(this.held + bytes)
      const [oldest] = larger?.incoming ?? []
      if (larger === null || oldest === undefined) return false
      larger.incoming.delete(oldest)
      oldest.dropForMemory()
    }
    this.held += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.held -= bytes
    this.whole.giveBack(bytes)
  }

  /** The sharer with the most, if it holds more than that. */
  private largerThan(bytes: number): Sharer | null {
    let [found, most]: [Sharer | null, number] = [null, bytes]
    for (const sharer of this.sharers()) {
      if (sharer.memory.bytes > most) [found, most] = [sharer, sharer.memory.bytes]
    }
    return found
  }
}
