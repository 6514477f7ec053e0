/**
 * The ids of the last events of a partition: an appender that was not told what became of a record sends it again,
 * under the same id and soon behind the first.
 */
export class RecentIds {
  private readonly ids = new Set<string>()
  /** The same in turn, each in the place of the one that it followed by so many. */
  private readonly turns: string[] = []
  private turn = 0

  constructor(private readonly most: number) {}

  /** Whether the id is none of the last so many; it is among them from then on. */
  isNew(id: string): boolean {
    if (this.ids.has(id)) return false
    const oldest = this.turns[this.turn]
    if (oldest !== undefined) this.ids.delete(oldest)
    this.ids.add(id)
    this.turns[this.turn] = id
    this.turn = (this.turn + 1) % this.most
    return true
  }
}
