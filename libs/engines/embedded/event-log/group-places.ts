import type { Database, RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { LogUnavailableError, type GroupPlace, type Partition } from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'

/** An offset alone, or one with a note. */
type Row = number | [offset: number, note: string]

/** Where groups go on, and what they noted of it. */
export class GroupPlaces {
  private readonly rows: Database<Row, [group: string, topic: string, partition: number]>

  constructor(private readonly root: RootDatabase<unknown, string>) {
    this.rows = root.openDB({ name: 'committed' })
  }

  /** Null if the group has none. */
  find(group: string, { topic, partition }: Partition): GroupPlace | null {
    const row = this.rows.get([group, topic, partition])
    if (row === undefined) return null
    const [offset, note] = typeof row === 'number' ? [row, ''] : row
    return { topic, partition, offset, note }
  }

  /** Resolves once all of them are durable; rejects with LogUnavailableError where none is. */
  async keep(group: string, places: readonly GroupPlace[]): Promise<void> {
    try {
      await commit(this.root, () => {
        for (const { topic, partition, offset, note } of places) {
          this.rows.putSync([group, topic, partition], note === '' ? offset : [offset, note])
        }
      })
    } catch (cause) {
      throw new LogUnavailableError(`the places of ${group} could not be written`, { cause })
    }
  }

  /** Where a pruned partition ends, which is kept beside the groups' places: 0 for one that never was pruned. */
  prunedTo(topic: TopicName, partition: number): number {
    return this.find(NOBODY, { topic, partition })?.offset ?? 0
  }

  /** To be called in a transaction. */
  putPrunedTo(topic: TopicName, partition: number, offset: number): void {
    this.rows.putSync([NOBODY, topic, partition], offset)
  }
}

const NOBODY = ''
