import { digestOf } from '#libs/domain/audit/leaf.js'
import { partitionName, type LogReader } from '#libs/ports/event-log/event-log.js'
import type { Target } from '#test/harness/client.js'
import {
  auditLogOf,
  downloadLog,
  fileOf,
  leafHash,
  merkleTreeHash,
  verifyCheckpoint,
  type AuditLogJson,
  type Checkpoint,
} from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

const SEQUENCED_WITHIN_MS = 90_000

/** Keeps the checkpoints that an audit log shows, to compare the log with them later. */
export class Auditor {
  readonly checkpoints: Checkpoint[] = []

  private constructor(private readonly log: AuditLogJson) {}

  static async of(target: Target): Promise<Auditor> {
    return new Auditor(await auditLogOf(target))
  }

  /** The size of the last checkpoint that was kept. */
  get size(): number {
    return this.checkpoints.at(-1)?.size ?? 0
  }

  /** Keeps the current checkpoint, if it is answered. Returns its size. */
  async look(target: Target): Promise<number> {
    const note = await fileOf(target, `${this.log.id}/checkpoint`).catch(() => null)
    if (note !== null) this.checkpoints.push(verifyCheckpoint(note.toString(), this.log.public_key))
    return this.size
  }

  /**
   * Waits until the log has so many leaves as there are records, as `digestsOf` returns them. Expects a leaf for each, in the
   * order of each partition, none twice, and that the log continues all checkpoints.
   */
  async verify(target: Target, digests: Readonly<Record<string, string>>): Promise<void> {
    const count = Object.keys(digests).length
    await until(`${count} leaves`, async () => (await this.look(target)) >= count, SEQUENCED_WITHIN_MS)
    const { entries, leaves } = await downloadLog(target, this.log)
    const hashes = entries.map(leafHash)
    for (const { size, root } of this.checkpoints) expect(merkleTreeHash(hashes.slice(0, size))).toEqual(root)
    const byPartition = Map.groupBy(leaves, ({ topic, partition }) => `${topic}/${partition}`)
    const sequenced: Record<string, string> = {}
    for (const [partition, own] of byPartition) {
      const offsets = own.map(({ offset }) => offset)
      expect(offsets).toEqual([...new Set(offsets)].toSorted((one, other) => one - other))
      for (const { offset, record_sha256 } of own) sequenced[`${partition}/${offset}`] = record_sha256
    }
    expect(sequenced).toMatchObject(digests)
  }
}

/** The digest of each record that is in the log of the only account, by its position. */
export async function digestsOf(log: LogReader): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  for (const topic of ['inbox-events', 'account-events'] as const) {
    for (const range of (await log.topology(topic)).partitions) {
      for await (const records of log.read(range)) {
        for (const record of records) digests[`${partitionName(range)}/${record.offset}`] = digestOf(record)
      }
    }
  }
  return digests
}
