/** Counts bytes held at once against a limit. */
export class MemoryBudget {
  private held = 0
  private readonly waiting: { bytes: number; enter: () => void }[] = []

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

  /** Resolves once the bytes are taken, first come first served. More than the limit are taken alone. */
  take(bytes: number): Promise<void> {
    if (this.waiting.length === 0 && this.fits(bytes)) {
      this.held += bytes
      return Promise.resolve()
    }
    return new Promise((enter) => this.waiting.push({ bytes, enter }))
  }

  giveBack(bytes: number): void {
    this.held -= bytes
    for (let next = this.waiting[0]; next !== undefined && this.fits(next.bytes); next = this.waiting[0]) {
      this.held += next.bytes
      this.waiting.shift()
      next.enter()
    }
  }

  private fits(bytes: number): boolean {
    return this.held === 0 || this.hasRoomFor(bytes)
  }
}

/** Where bytes are taken from and given back to. */
export type Budget = Pick<MemoryBudget, 'tryTake' | 'giveBack'>

/** The part of a budget that one of its users may take: what is taken here counts in both. */
export class BudgetShare {
  private held = 0

  constructor(
    private readonly limit: number,
    private readonly whole: MemoryBudget,
  ) {}

  get isEmpty(): boolean {
    return this.held === 0
  }

  hasRoomFor(bytes: number): boolean {
    return this.held + bytes <= this.limit && this.whole.hasRoomFor(bytes)
  }

  /** Whether the bytes were taken; who took them gives them back. */
  tryTake(bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) return false
    this.held += bytes
    return this.whole.tryTake(bytes)
  }

  giveBack(bytes: number): void {
    this.held -= bytes
    this.whole.giveBack(bytes)
  }
}
