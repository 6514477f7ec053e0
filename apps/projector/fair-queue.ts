/** What waits, by whom it waits for: each gets its turn, however much the others bring. */
export class FairQueue<Item> {
  /** In the order of their turns. */
  private readonly lines = new Map<string, Item[]>()
  private count = 0

  get size(): number {
    return this.count
  }

  /** The first of each owner. */
  heads(): Item[] {
    return [...this.lines.values()].flatMap(([item]) => (item === undefined ? [] : [item]))
  }

  add(owner: string, item: Item): void {
    this.lineOf(owner).push(item)
    this.count += 1
  }

  /** Ahead of what waits for the same owner. */
  addFirst(owner: string, item: Item): void {
    this.lineOf(owner).unshift(item)
    this.count += 1
  }

  /** The next in turn of those that may be taken; null for none. Their owner's next turn is behind all others'. */
  take(mayTake: (item: Item, owner: string) => boolean): Item | null {
    for (const [owner, line] of this.lines) {
      const [item] = line
      if (item === undefined || !mayTake(item, owner)) continue
      line.shift()
      this.lines.delete(owner)
      if (line.length > 0) this.lines.set(owner, line)
      this.count -= 1
      return item
    }
    return null
  }

  /** Takes all of those out, whoever's turn it is. */
  remove(isWanted: (item: Item) => boolean): Item[] {
    const removed: Item[] = []
    for (const [owner, line] of this.lines) {
      const kept = line.filter((item) => !isWanted(item))
      if (kept.length === line.length) continue
      removed.push(...line.filter(isWanted))
      if (kept.length === 0) this.lines.delete(owner)
      else this.lines.set(owner, kept)
    }
    this.count -= removed.length
    return removed
  }

  private lineOf(owner: string): Item[] {
    const line = this.lines.get(owner) ?? []
    this.lines.set(owner, line)
    return line
  }
}
