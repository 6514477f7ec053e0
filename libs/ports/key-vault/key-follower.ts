import pLimit from 'p-limit'
import { decodeBatch } from '#libs/ports/event-log/partition-loop.js'
import type { PartitionRange, StoredRecord, LogReader } from '#libs/ports/event-log/event-log.js'
import { inboxKeyEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { SharedRun } from '#libs/runtime/timing/shared-run.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { KeyStatement, KeyView, ViewStanding } from './key-view.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'

interface KeyFollowerOptions {
  log: LogReader
  view: KeyView
  /** Appends what the view holds again, behind records that say otherwise; resolves once that is durable. */
  settle: (statements: readonly KeyStatement[]) => Promise<void>
  onError: (error: unknown, during: string) => void
}

/** A view that nobody asks stands that far behind the log at most, and so does one restored within a moment. */
const FOLLOW_EVERY_MS = 3_000
/** Looks for a key that has not come are that far apart in a partition, however many ask. */
const LOOKS_APART_MS = 50
const PARTITIONS_AT_ONCE = 4
const RECORDS_A_STEP = 500
/** Other processes may move the view meanwhile; each time one has got further, so this is far more than it takes. */
const MAX_BEGINNINGS = 20

/**
 * Keeps the view of inbox keys up with the log. Any number of processes do so on one view: a step is compare and set.
 *
 * The view is trusted where it stands at least as far as this process has seen it stand. A view that was lost,
 * restored from an older copy or made of another log stands elsewhere, and is caught up before anything is read in it.
 */
export class KeyFollower {
  private readonly reached: (Pick<ViewStanding, 'logId' | 'next'> | null)[]
  private readonly catchUps: SharedRun<void>[]
  private readonly rounds: Repetition
  private isStopped = false

  constructor(
    private readonly options: KeyFollowerOptions,
    partitions: number,
  ) {
    this.reached = Array.from({ length: partitions }, () => null)
    this.catchUps = this.reached.map(
      (_, partition) => new SharedRun(() => this.follow(partition), LOOKS_APART_MS),
    )
    this.rounds = new Repetition({ everyMs: FOLLOW_EVERY_MS, work: () => this.followAll() })
  }

  /** Follows every partition now, and again every few seconds. */
  start(): void {
    this.rounds.start()
  }

  /** Resolves once nothing of it is under way. */
  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all([this.rounds.stop(), ...this.catchUps.map((catchUp) => catchUp.idle())])
  }

  /** Whether what was found in a view standing there may be believed. If so, one that stands before it no longer is. */
  trusts(partition: number, standing: ViewStanding | null): boolean {
    const reached = this.reached[partition]
    if (reached == null || standing?.logId !== reached.logId || standing.next < reached.next) return false
    reached.next = standing.next
    return true
  }

  /**
   * Resolves once the view stands where the log's partition ended after the call, or further. Rejects if the log
   * or the view can't be reached, and with NewerSchemaError at a record that a newer version wrote.
   */
  async catchUp(partition: number): Promise<void> {
    await this.catchUps[partition]?.get()
  }

  /** What the log's partition holds now. */
  async rangeOf(partition: number): Promise<{ logId: string; range: PartitionRange }> {
    const { logId, partitions } = await this.options.log.topology('inbox-keys')
    const range = partitions.find((candidate) => candidate.partition === partition)
    if (range === undefined) throw new RangeError(`inbox-keys has no partition ${partition}`)
    return { logId, range }
  }

  private async followAll(): Promise<void> {
    const limit = pLimit(PARTITIONS_AT_ONCE)
    const failures = new Map<string, unknown>()
    await Promise.all(
      this.catchUps.map((catchUp) =>
        limit(() => catchUp.get()).catch((error: unknown) => failures.set(String(error), error)),
      ),
    )
    // One fault of the log or of the view is told of once, not for each partition.
    if (this.isStopped) return
    for (const error of failures.values()) this.options.onError(error, 'following inbox keys')
  }

  private async follow(partition: number): Promise<void> {
    for (let beginnings = 0; beginnings < MAX_BEGINNINGS && !this.isStopped; beginnings += 1) {
      // The view is asked before the log: what it has applied can't lie past the end that is then told.
      const { standing } = await this.options.view.find(partition, [])
      const { logId, range } = await this.rangeOf(partition)
      if (standing?.logId !== logId || standing.next > range.end) {
        // A log that ends short of the view has lost its tail: it is read again, and what the view knows stays.
        await this.options.view.begin(partition, { logId, next: range.first }, standing)
        continue
      }
      const isThere = await this.applyRange(logId, range, standing.next)
      if (!isThere) continue
      this.reached[partition] = { logId, next: range.end }
      return
    }
    throw new Error(`the view of inbox-keys/${partition} could not be caught up`)
  }

  /** False if another process moved the view back, or to another log, or if this one is being stopped. */
  private async applyRange(logId: string, range: PartitionRange, standsAt: number): Promise<boolean> {
    const { partition, end } = range
    let from = standsAt
    const step = async (records: readonly StoredRecord[], to: number): Promise<boolean> => {
      while (from < to && !this.isStopped) {
        const left = records.filter(({ offset }) => offset >= from)
        if (await this.applyRecords({ partition, logId, from, to }, left)) {
          from = to
          continue
        }
        const { standing } = await this.options.view.find(partition, [])
        if (standing?.logId !== logId || standing.next < from) return false
        from = standing.next
      }
      return from >= to
    }
    for await (const batch of this.options.log.read({ ...range, first: Math.max(from, range.first) })) {
      for (let at = 0; at < batch.length; at += RECORDS_A_STEP) {
        const records = batch.slice(at, at + RECORDS_A_STEP)
        const last = records.at(-1)
        if (last !== undefined && !(await step(records, last.offset + 1))) return false
      }
    }
    // What compaction has removed leaves a gap, also at the end.
    return step([], end)
  }

  /** False if the view does not stand at `from`. */
  private async applyRecords(
    move: { partition: number; logId: string; from: number; to: number },
    records: readonly StoredRecord[],
  ): Promise<boolean> {
    const { view, settle, onError } = this.options
    const { partition, from, to } = move
    const batch = { topic: 'inbox-keys', partition, from, next: to, records } as const
    const { events, undecodable, next } = decodeBatch(inboxKeyEventCodec, batch, this.reached.length)
    for (const { record, reason } of undecodable) {
      const name = `inbox-keys/${partition}/${record.offset}`
      const error = new Error(`${name} is passed over, since it can't be decoded: ${reason}`)
      onError(error, 'following inbox keys')
    }
    const said = events.map(({ recorded }) => recorded.event)
    const statements = said.flatMap((event) => statementIn(event) ?? [])
    const masterKeyId = said.findLast((event) => event.type === 'MasterKeyTaken')?.masterKeyId ?? null
    const step = { ...move, to: next, statements, masterKeyId, settled: new Set<InboxId>() }
    let outcome = await view.apply(step)
    if (typeof outcome === 'object') {
      const { contested } = outcome
      await settle(contested)
      outcome = await view.apply({ ...step, settled: new Set(contested.map(({ inboxId }) => inboxId)) })
    }
    if (outcome !== 'applied') return false
    if (next === to) return true
    // The first record that is left is a newer version's: decoding it throws.
    const left = records.filter(({ offset }) => offset >= next)
    return this.applyRecords({ ...move, from: next }, left)
  }
}

function statementIn(event: InboxKeyEvent): KeyStatement | null {
  switch (event.type) {
    case 'InboxKeyForgotten':
      return { inboxId: event.inboxId, says: { state: 'forgotten' } }
    case 'InboxKeyWrapped': {
      const { inboxId, masterKeyId, wrapped } = event
      return { inboxId, says: { state: 'wrapped', key: { masterKeyId, wrapped } } }
    }
    case 'MasterKeyTaken':
    case 'KeysHeartbeat':
      return null
  }
}
