import pLimit from 'p-limit'
import type { KeyOwner } from '#libs/ports/key-vault/key-vault.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { inboxKeyEventCodec } from '#libs/ports/event-log/cloud-event.js'
import {
  type LogReader,
  type PartitionRange,
  type StoredRecord,
  findRange,
} from '#libs/ports/event-log/event-log.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import { PeriodicTask, SharedRun } from '#libs/runtime/timing.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type {
  KeyStatement,
  KeyView,
  KeyViewProgress,
} from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'

interface KeyFollowerOptions {
  log: LogReader
  view: KeyView
  /** Appends entries of the view again, after records that contradict them; resolves once that is durable. */
  settle: (statements: readonly KeyStatement[]) => Promise<void>
  onError: (error: unknown, during: string) => void
}

/** The view catches up this often even if no key is looked up. */
const FOLLOW_EVERY_MS = 3_000
/** The minimum time between two catch-ups of a partition, however many lookups wait for them. */
const CATCH_UPS_APART_MS = 50
const CONCURRENT_PARTITIONS = 4
const RECORDS_PER_STEP = 500
/** Other processes may move the view meanwhile. Each attempt gets further, so this is far more than needed. */
const MAX_ATTEMPTS = 20

/**
 * Applies the log to the view of keys. Any number of processes may do so on the same view, since each step is
 * compare and set.
 *
 * The view is trusted if it is at least at the offset at which this process has seen it. A view that was lost, restored
 * from an older copy or made from another log is not, and must catch up before it is read.
 */
export class KeyFollower {
  private readonly reached: (Pick<KeyViewProgress, 'logId' | 'next'> | null)[]
  private readonly catchUps: SharedRun<void>[]
  private readonly rounds: PeriodicTask
  private isStopped = false

  constructor(
    private readonly options: KeyFollowerOptions,
    partitions: number,
  ) {
    this.reached = Array.from({ length: partitions }, () => null)
    this.catchUps = this.reached.map(
      (_, partition) => new SharedRun(() => this.follow(partition), CATCH_UPS_APART_MS),
    )
    this.rounds = new PeriodicTask({ everyMs: FOLLOW_EVERY_MS, work: () => this.followAll() })
  }

  /** Catches up every partition now, and again every few seconds. */
  start(): void {
    this.rounds.start()
  }

  /** Resolves once no work is in progress. */
  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all([this.rounds.stop(), ...this.catchUps.map((catchUp) => catchUp.idle())])
  }

  /** Whether a view with this progress is trusted. If so, a view with less progress no longer is. */
  trusts(partition: number, progress: KeyViewProgress | null): boolean {
    const reached = this.reached[partition]
    if (reached == null || progress?.logId !== reached.logId || progress.next < reached.next) return false
    reached.next = progress.next
    return true
  }

  /**
   * Resolves once the view has reached the end that the log's partition had after the call. Rejects if the log or the view
   * is unavailable, and with NewerSchemaError at a record that a newer version wrote.
   */
  async catchUp(partition: number): Promise<void> {
    await this.catchUps[partition]?.get()
  }

  rangeOf(partition: number): Promise<{ logId: string; range: PartitionRange }> {
    return findRange(this.options.log, { topic: 'inbox-keys', partition })
  }

  private async followAll(): Promise<void> {
    const limit = pLimit(CONCURRENT_PARTITIONS)
    const failures = new Map<string, unknown>()
    await Promise.all(
      this.catchUps.map((catchUp) =>
        limit(() => catchUp.get()).catch((error: unknown) => failures.set(String(error), error)),
      ),
    )
    // The same failure is reported once, not for each partition.
    if (this.isStopped) return
    for (const error of failures.values()) this.options.onError(error, 'following inbox keys')
  }

  private async follow(partition: number): Promise<void> {
    for (let attempts = 0; attempts < MAX_ATTEMPTS && !this.isStopped; attempts += 1) {
      // The view is read before the log, so that its offset can't be past the end unless the log was truncated.
      const { progress } = await this.options.view.find(partition, [])
      const { logId, range } = await this.rangeOf(partition)
      if (progress?.logId !== logId || progress.next > range.end) {
        // If the log ends before the view's offset, it was truncated: it is read again, and the view's entries stay.
        await this.options.view.begin(partition, { logId, next: range.first }, progress)
        continue
      }
      const isCaughtUp = await this.applyRange(logId, range, progress.next)
      if (!isCaughtUp) continue
      this.reached[partition] = { logId, next: range.end }
      return
    }
    throw new Error(`the view of inbox-keys/${partition} could not catch up`)
  }

  /** False if another process moved the view back or to another log, or if this follower is being stopped. */
  private async applyRange(logId: string, range: PartitionRange, position: number): Promise<boolean> {
    const { partition, end } = range
    let from = position
    const step = async (records: readonly StoredRecord[], to: number): Promise<boolean> => {
      while (from < to && !this.isStopped) {
        const left = records.filter(({ offset }) => offset >= from)
        const next = await this.applyRecords({ partition, logId, from, to }, left)
        if (next !== null) {
          from = next
          continue
        }
        const { progress } = await this.options.view.find(partition, [])
        if (progress?.logId !== logId || progress.next < from) return false
        from = progress.next
      }
      return from >= to
    }
    for await (const batch of this.options.log.read({ ...range, first: Math.max(from, range.first) })) {
      for (const records of chunksOf(batch, RECORDS_PER_STEP)) {
        const last = records.at(-1)
        if (last !== undefined && !(await step(records, last.offset + 1))) return false
      }
    }
    // Compaction leaves gaps, possibly also at the end.
    return step([], end)
  }

  /**
   * Resolves with the offset that the view has reached: `to`, or that of a record that a newer version wrote. Null if the
   * view is not at `from`. Rejects with NewerSchemaError if the first record is the one of a newer version.
   */
  private async applyRecords(
    move: { partition: number; logId: string; from: number; to: number },
    records: readonly StoredRecord[],
  ): Promise<number | null> {
    const { view, settle, onError } = this.options
    const { partition, from, to } = move
    const batch = { topic: 'inbox-keys', partition, from, next: to, records } as const
    const { events, undecodable, next } = decodeBatch(inboxKeyEventCodec, batch, this.reached.length)
    for (const { record, reason } of undecodable) {
      const name = `inbox-keys/${partition}/${record.offset}`
      const error = new Error(`${name} is skipped, since it can't be decoded: ${reason}`)
      onError(error, 'following inbox keys')
    }
    const keyEvents = events.map(({ recorded }) => recorded.event)
    const statements = keyEvents.flatMap((event) => statementIn(event) ?? [])
    const masterKeyId = keyEvents.findLast((event) => event.type === 'MasterKeyTaken')?.masterKeyId ?? null
    const step = { ...move, to: next, statements, masterKeyId, settled: new Set<KeyOwner>() }
    let outcome = await view.apply(step)
    if (typeof outcome === 'object') {
      const { contested } = outcome
      await settle(contested)
      outcome = await view.apply({ ...step, settled: new Set(contested.map(({ owner }) => owner)) })
    }
    return outcome === 'applied' ? next : null
  }
}

function statementIn(event: InboxKeyEvent): KeyStatement | null {
  switch (event.type) {
    case 'InboxKeyForgotten':
      return { owner: event.inboxId, entry: { state: 'forgotten' } }
    case 'InboxKeyWrapped': {
      const { inboxId: owner, masterKeyId, wrapped } = event
      return { owner, entry: { state: 'wrapped', key: { masterKeyId, wrapped } } }
    }
    case 'MasterKeyTaken':
    case 'KeysHeartbeat':
      return null
  }
}
