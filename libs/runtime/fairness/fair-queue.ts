/** A queue that serves its owners in turn, however many items each has. */
export class FairQueue<Item> {
  /** In the order of the owners' turns. */
  private readonly lines = new Map<string, Item[]>()
  private count = 0

  get size(): number {
    return this.count
  }

  has(owner: string): boolean {
    return this.lines.has(owner)
  }

  add(owner: string, item: Item): void {
    this.lineOf(owner).push(item)
    this.count += 1
  }

  /** Adds an item before the owner's other items. */
  addFirst(owner: string, item: Item): void {
    this.lineOf(owner).unshift(item)
    this.count += 1
  }

  /**
   * Removes and returns the next item that may be taken; null if there is none. Its owner moves to the end of the
   * queue.
   */
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

  /** Removes and returns all matching items. */
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
