import type { Database, RootDatabase } from 'lmdb'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { LogUnavailableError, type CommittedOffset, type Partition } from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'

/** An offset alone, or one with a note. */
type Row = number | [offset: number, note: string]

/** The offsets that consumer groups continue from, with their notes. */
export class CommittedOffsets {
  private readonly rows: Database<Row, [group: string, topic: string, partition: number]>

  constructor(private readonly root: RootDatabase<unknown, string>) {
    this.rows = root.openDB({ name: 'committed' })
  }

  find(group: string, { topic, partition }: Partition): CommittedOffset | null {
    const row = this.rows.get([group, topic, partition])
    if (row === undefined) return null
    const [offset, note] = typeof row === 'number' ? [row, ''] : row
    return { topic, partition, offset, note }
  }

  /** Resolves once all of them are durable; rejects with LogUnavailableError if none is. */
  async put(group: string, offsets: readonly CommittedOffset[]): Promise<void> {
    try {
      await commit(this.root, () => {
        for (const { topic, partition, offset, note } of offsets) {
          this.rows.putSync([group, topic, partition], note === '' ? offset : [offset, note])
        }
      })
    } catch (cause) {
      throw new LogUnavailableError(`the offsets of ${group} could not be written`, { cause })
    }
  }

  /** The end of the records that retention removed from a partition: 0 if it has removed none. */
  prunedTo(topic: TopicName, partition: number): number {
    return this.find(RETENTION, { topic, partition })?.offset ?? 0
  }

  /** Call it in a transaction. */
  putPrunedTo(topic: TopicName, partition: number, offset: number): void {
    this.rows.putSync([RETENTION, topic, partition], offset)
  }
}

/** Used as a group's name; those of groups are never empty. */
const RETENTION = ''
