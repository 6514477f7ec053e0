/**
 * The ids of the last events of a partition: an appender that was not told what became of a record sends it again,
 * under the same id and soon behind the first.
 */
export class RecentIds {
  private latest = new Set<string>()
  private former: ReadonlySet<string> = new Set()

  /** Remembers `least` ids, and up to twice as many. */
  constructor(private readonly least: number) {}

  /** Whether the id is none of those that are remembered; it is one of them from then on. */
  isNew(id: string): boolean {
    if (this.former.has(id)) return false
    const { size } = this.latest
    if (this.latest.add(id).size === size) return false
    if (this.latest.size === this.least) {
      this.former = this.latest
      this.latest = new Set()
    }
    return true
  }
}
