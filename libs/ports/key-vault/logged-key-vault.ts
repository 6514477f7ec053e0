import { LRUCache } from 'lru-cache'
import { messageOf } from '#libs/runtime/errors.js'
import { decodeBatch } from '#libs/ports/event-log/partition-loop.js'
import type { LogAppender, LogReader } from '#libs/ports/event-log/event-log.js'
import { inboxKeyEventCodec, MASTER_KEY_SUBJECT } from '#libs/ports/event-log/cloud-event.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { KeyFollower } from './key-follower.js'
import { KeyForgottenError, KeyVaultUnavailableError, type KeyLookup, type KeyVault } from './key-vault.js'
import type { KeyEntry, KeyStatement, KeyView } from './key-view.js'
import { MasterKeyMissingError, type MasterKeys, type WrappedKey } from './master-key.js'
import { makeSecretKey, type SecretKey } from './content.js'

/*
 * Inbox keys on the compacted topic inbox-keys, viewed in a fast store. See docs/decisions/0010-inbox-keys-on-the-log.md
 * for why a key that sealed something is never replaced, and what a lost or restored view does.
 */

export interface LoggedKeyVaultOptions {
  log: LogAppender & LogReader
  view: KeyView
  masterKeys: MasterKeys
  now: () => Date
  /** Told of faults in the background, each of which is tried again. */
  onError: (error: unknown, during: string) => void
  /** How often to append a heartbeat to each partition (HEARTBEAT_EVERY_MS); never if left out. One process has to. */
  heartbeatEveryMs?: number
}

/** A key that was found lately: unwrapping one costs more than sealing a mail with it. */
interface CachedKey {
  wrapped: Uint8Array
  key: SecretKey
  /** When the view last said that the inbox has this key. */
  confirmedAtMs: number
}

/** With the topic's configuration, a forgotten key leaves the disks of the brokers within half an hour. */
export const HEARTBEAT_EVERY_MS = 300_000

/** How long a caller waits for a view that is being caught up; that goes on behind it. */
const CATCH_UP_WITHIN_MS = 5_000
const MAX_CACHED_KEYS = 10_000
/** A process opens mail with a key that another one has forgotten for so long at most. */
const CACHED_FOR_MS = 2_000

export class LoggedKeyVault implements KeyVault {
  private readonly creating = new Map<InboxId, Promise<SecretKey>>()
  private readonly cache = new LRUCache<InboxId, CachedKey>({ max: MAX_CACHED_KEYS })
  private readonly follower: KeyFollower
  private readonly heartbeats: Repetition | null
  private isClosed = false

  /**
   * Rejects with MasterKeyMissingError if the master key that served new inboxes last is not configured, with
   * KeyVaultUnavailableError if the log or the view can't be reached. Takes both and leaves them open.
   */
  static async open(options: LoggedKeyVaultOptions): Promise<LoggedKeyVault> {
    const vault = new LoggedKeyVault(options, options.log.partitionCount('inbox-keys'))
    await vault.checkMasterKey()
    vault.follower.start()
    vault.heartbeats?.start()
    return vault
  }

  private constructor(
    private readonly options: LoggedKeyVaultOptions,
    private readonly partitions: number,
  ) {
    const { log, view, onError, heartbeatEveryMs: everyMs } = options
    const settle = async (statements: readonly KeyStatement[]) => {
      await Promise.all(statements.map((statement) => this.appendStatement(statement)))
    }
    this.follower = new KeyFollower({ log, view, settle, onError }, partitions)
    this.heartbeats = everyMs === undefined ? null : this.heartbeatsEvery(everyMs)
  }

  create(inboxId: InboxId): Promise<SecretKey> {
    let creating = this.creating.get(inboxId)
    if (creating === undefined) {
      creating = this.createOnce(inboxId).finally(() => this.creating.delete(inboxId))
      this.creating.set(inboxId, creating)
    }
    return creating
  }

  async find(inboxId: InboxId): Promise<KeyLookup> {
    const cached = this.cache.get(inboxId)
    const ageMs = this.options.now().getTime() - (cached?.confirmedAtMs ?? -Infinity)
    if (cached !== undefined && ageMs >= 0 && ageMs < CACHED_FOR_MS) {
      return { state: 'known', key: cached.key }
    }
    const partition = partitionOf(inboxId, this.partitions)
    const entry = await this.reach(`the key of ${inboxId}`, async () => {
      const [first] = await this.look(partition, [inboxId])
      if (first?.state !== 'absent') return first
      await this.catchUp(partition)
      const [second] = await this.look(partition, [inboxId])
      return second
    })
    return this.lookupOf(inboxId, entry)
  }

  async forget(inboxIds: readonly InboxId[]): Promise<void> {
    const byPartition = Map.groupBy(new Set(inboxIds), (inboxId) => partitionOf(inboxId, this.partitions))
    await this.reach('a record that keys are forgotten', () =>
      Promise.all([...byPartition].map(([partition, ids]) => this.forgetIn(partition, ids))),
    )
    for (const inboxId of inboxIds) this.cache.delete(inboxId)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([this.follower.stop(), this.heartbeats?.stop()])
    await Promise.allSettled(this.creating.values())
  }

  private async createOnce(inboxId: InboxId): Promise<SecretKey> {
    const { view, masterKeys } = this.options
    const partition = partitionOf(inboxId, this.partitions)
    const stands = await this.reach(`the key of ${inboxId}`, async () => {
      // The log is not read to its end for this: where an earlier record is there that nobody has seen, its key has
      // sealed nothing.
      const [found] = await this.look(partition, [inboxId])
      if (found?.state === 'forgotten') return found
      const isThere = found?.state === 'wrapped'
      const key = isThere ? found.key : masterKeys.wrap(inboxId, makeSecretKey())
      if (!isThere) await this.appendStatement({ inboxId, says: { state: 'wrapped', key } })
      const taken = await view.take(partition, inboxId, key)
      // The log's last word must be what stands, before anything is sealed with it.
      if (taken.wasContested) await this.appendStatement({ inboxId, says: taken.stands })
      return taken.stands
    })
    const lookup = this.lookupOf(inboxId, stands)
    if (lookup.state !== 'known') throw new KeyForgottenError(inboxId)
    return lookup.key
  }

  private async forgetIn(partition: number, inboxIds: readonly InboxId[]): Promise<void> {
    const entries = await this.look(partition, inboxIds)
    const left = inboxIds.filter((_, index) => entries[index]?.state !== 'forgotten')
    if (left.length === 0) return
    await Promise.all(left.map((inboxId) => this.appendStatement({ inboxId, says: { state: 'forgotten' } })))
    await this.options.view.forget(partition, left)
  }

  /** What the view holds, once it may be believed. */
  private async look(partition: number, inboxIds: readonly InboxId[]): Promise<KeyEntry[]> {
    const found = await this.options.view.find(partition, inboxIds)
    if (this.follower.trusts(partition, found.standing)) return found.entries
    await this.catchUp(partition)
    const again = await this.options.view.find(partition, inboxIds)
    if (this.follower.trusts(partition, again.standing)) return again.entries
    throw new Error(`the view of inbox-keys/${partition} has just been lost again`)
  }

  private async catchUp(partition: number): Promise<void> {
    try {
      await beforeDeadline(CATCH_UP_WITHIN_MS, this.follower.catchUp(partition))
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error
      throw new Error(`the view of inbox-keys/${partition} is still being caught up`, { cause: error })
    }
  }

  private lookupOf(inboxId: InboxId, entry: KeyEntry | undefined): KeyLookup {
    if (entry === undefined || entry.state === 'absent') return { state: 'unknown' }
    if (entry.state === 'forgotten') {
      this.cache.delete(inboxId)
      return { state: 'forgotten' }
    }
    return { state: 'known', key: this.unwrap(inboxId, entry.key) }
  }

  /** Opens what the view has just said to be the inbox's key. */
  private unwrap(inboxId: InboxId, key: WrappedKey): SecretKey {
    const cached = this.cache.get(inboxId)
    const isSame = cached !== undefined && Buffer.compare(cached.wrapped, key.wrapped) === 0
    const unwrapped = isSame ? cached.key : this.options.masterKeys.unwrap(inboxId, key)
    const confirmedAtMs = this.options.now().getTime()
    this.cache.set(inboxId, { wrapped: key.wrapped, key: unwrapped, confirmedAtMs })
    return unwrapped
  }

  /** The last master key that served new inboxes is one of those configured; from now on it is the current one. */
  private async checkMasterKey(): Promise<void> {
    const { view, masterKeys } = this.options
    const partition = partitionOf(MASTER_KEY_SUBJECT, this.partitions)
    await this.reach('which master key serves new inboxes', async () => {
      await this.follower.catchUp(partition)
      const { standing } = await view.find(partition, [])
      const last = standing?.masterKeyId ?? null
      if (last !== null) masterKeys.require(last)
      if (last === masterKeys.current) return
      await this.append({ type: 'MasterKeyTaken', masterKeyId: masterKeys.current })
      await this.requireFirstTaken(partition, standing?.next ?? 0)
    })
  }

  /**
   * Of processes that start at once, each with another master key, the first on the log has its way: the others don't
   * start, and leave the log's last word as it was.
   */
  private async requireFirstTaken(partition: number, from: number): Promise<void> {
    const { log, masterKeys } = this.options
    const { range } = await this.follower.rangeOf(partition)
    let next = Math.max(range.first, from)
    for await (const records of log.read({ ...range, first: next })) {
      const batch = { topic: range.topic, partition, from: next, next: range.end, records }
      const { events } = decodeBatch(inboxKeyEventCodec, batch, this.partitions)
      next = (records.at(-1)?.offset ?? next) + 1
      const first = events.map(({ recorded }) => recorded.event).find(({ type }) => type === 'MasterKeyTaken')
      if (first?.type !== 'MasterKeyTaken') continue
      if (!masterKeys.has(first.masterKeyId)) await this.append(first)
      masterKeys.require(first.masterKeyId)
      return
    }
  }

  /**
   * Appends a small record to each partition. Without it a forgotten key would stay on the disks of the brokers of an
   * idle partition: they compact a segment only behind its end, and end it only at an append. It beats whether or not a
   * key was forgotten since: a beat must come when a segment is old, not when the record is, and compaction leaves one.
   */
  private heartbeatsEvery(everyMs: number): Repetition {
    const { partitions } = this
    const pulses = Array.from({ length: partitions }, (_, partition) => pulseOf(partition, partitions))
    const work = async () => {
      const beatAt = this.options.now()
      try {
        await Promise.all(pulses.map((pulse) => this.append({ type: 'KeysHeartbeat', pulse, beatAt })))
      } catch (error) {
        this.options.onError(error, 'appending heartbeats to inbox-keys')
      }
    }
    return new Repetition({ everyMs, work })
  }

  private appendStatement({ inboxId, says }: KeyStatement): Promise<void> {
    if (says.state === 'wrapped') return this.append({ type: 'InboxKeyWrapped', inboxId, ...says.key })
    return this.append({ type: 'InboxKeyForgotten', inboxId, forgottenAt: this.options.now() })
  }

  private async append(event: InboxKeyEvent): Promise<void> {
    const occurrence = { id: mintId('evt'), time: this.options.now(), source: '/mayfly/key-vault', event }
    await this.options.log.append('inbox-keys', inboxKeyEventCodec.encode(occurrence))
  }

  private async reach<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    if (this.isClosed) throw new KeyVaultUnavailableError(`${what} is out of reach: the vault is closed`)
    try {
      return await work()
    } catch (cause) {
      // Whatever is wrong with the log or the view, a newer record too: none of it says that a key is not there.
      if (cause instanceof MasterKeyMissingError) throw cause
      throw new KeyVaultUnavailableError(`${what} is out of reach: ${messageOf(cause)}`, { cause })
    }
  }
}

/** The key of a partition's heartbeats: always the same one, so that compaction leaves one of them. */
function pulseOf(partition: number, partitions: number): string {
  for (let n = 0; ; n += 1) {
    const pulse = `heartbeat-${n}`
    if (partitionOf(pulse, partitions) === partition) return pulse
  }
}
