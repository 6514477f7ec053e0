import type { EventLog, PartitionRange, StoredRecord } from '#libs/event-log/event-log.js'
import { decodeKeyRecord } from '#libs/event-log/key-records.js'
import { partitionOf } from '#libs/event-log/partitioner.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import { KeyVaultUnavailableError } from './key-vault.js'
import type { KeyEntry, KeyView } from './key-view.js'

export interface KeyFollowerOptions {
  log: Pick<EventLog, 'read' | 'topology'>
  view: KeyView
  onError: (error: unknown, during: string) => void
}

/** Brings the view of inbox keys up to the log's present end. Any number of processes may do so at once. */
export class KeyFollower {
  /** A look under way, and one that begins once that is over, which whoever comes meanwhile shares. */
  private readonly underWay = new Map<number, Promise<void>>()
  private readonly next = new Map<number, Promise<void>>()

  constructor(private readonly options: KeyFollowerOptions) {}

  /**
   * Resolves once the view has what the log held when this was called. Rejects with KeyVaultUnavailableError where
   * either is out of reach, or a newer version wrote what stands there.
   */
  async followFor(inboxId: InboxId): Promise<void> {
    const { partitions } = await this.topology()
    await this.follow(partitionOf(inboxId, partitions.length))
  }

  async followAll(): Promise<void> {
    const { partitions } = await this.topology()
    await Promise.all(partitions.map(({ partition }) => this.follow(partition)))
  }

  private follow(partition: number): Promise<void> {
    const current = this.underWay.get(partition)
    if (current === undefined) return this.begin(partition)
    let next = this.next.get(partition)
    if (next === undefined) {
      const begin = () => {
        this.next.delete(partition)
        return this.begin(partition)
      }
      next = current.then(begin, begin)
      this.next.set(partition, next)
    }
    return next
  }

  private begin(partition: number): Promise<void> {
    const look = this.followOnce(partition).finally(() => this.underWay.delete(partition))
    this.underWay.set(partition, look)
    return look
  }

  private async followOnce(partition: number): Promise<void> {
    let aheadAt: number | undefined
    for (;;) {
      const { logId, partitions } = await this.topology()
      const range = partitions.find((candidate) => candidate.partition === partition)
      if (range === undefined) throw new Error(`inbox-keys has no partition ${partition}`)
      const begun = await this.options.view.begin(logId, range, aheadAt)
      // Somebody else may move the view meanwhile: then it goes on from there.
      if (typeof begun === 'number' && (begun >= range.end || (await this.applyFrom(begun, range)))) return
      aheadAt = typeof begun === 'number' ? undefined : begun.aheadAt
    }
  }

  /** Whether all of the range has been applied. */
  private async applyFrom(position: number, range: PartitionRange): Promise<boolean> {
    const { log, view } = this.options
    const { partition, end } = range
    let from = position
    for await (const records of this.orUnavailable(log.read({ ...range, first: position }))) {
      const to = (records.at(-1)?.offset ?? from) + 1
      if (!(await view.apply({ partition, from, to, entries: this.entriesOf(records) }))) return false
      from = to
    }
    // What compaction has removed at the range's end is not there to be read.
    return from >= end || view.apply({ partition, from, to: end, entries: [] })
  }

  private entriesOf(records: readonly StoredRecord[]): (readonly [InboxId, KeyEntry])[] {
    return records.flatMap((stored): (readonly [InboxId, KeyEntry])[] => {
      const decoded = decodeKeyRecord(stored)
      if (decoded.kind === 'newer') {
        throw new KeyVaultUnavailableError(
          `inbox-keys holds a record of a newer version (${decoded.type}): bring this process up to date`,
        )
      }
      if (decoded.kind === 'undecodable') {
        this.options.onError(new Error(decoded.reason), `reading a key record at ${stored.offset}`)
        return []
      }
      const { record } = decoded
      if (record.type === 'KeysHeartbeat') return []
      if (record.type === 'KeyForgotten') return [[record.inboxId, 'forgotten']]
      return [[record.inboxId, { masterKeyId: record.masterKeyId, wrapped: record.wrapped }]]
    })
  }

  private async topology() {
    try {
      return await this.options.log.topology('inbox-keys')
    } catch (cause) {
      throw new KeyVaultUnavailableError('the topic of inbox keys is out of reach', { cause })
    }
  }

  private async *orUnavailable(batches: AsyncIterable<StoredRecord[]>): AsyncIterable<StoredRecord[]> {
    try {
      yield* batches
    } catch (cause) {
      if (cause instanceof KeyVaultUnavailableError) throw cause
      throw new KeyVaultUnavailableError('the topic of inbox keys could not be read', { cause })
    }
  }
}
