/**
 * The ids of the last events of a partition: an appender that was not told what became of a record sends it again,
 * under the same id and soon behind the first.
 */
export class RecentIds {
  private readonly ids = new Set<string>()

  constructor(private readonly most: number) {}

  /** Whether the id is none of the last so many; it is among them from then on. */
  isNew(id: string): boolean {
    if (this.ids.has(id)) return false
    this.ids.add(id)
    if (this.ids.size > this.most) {
      for (const oldest of this.ids) {
        this.ids.delete(oldest)
        break
      }
    }
    return true
  }
}
