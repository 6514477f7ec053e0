import { messageOf } from '#libs/runtime/errors.js'
import { decodeBatch } from '#libs/ports/event-log/decode-batch.js'
import type { LogAppender, LogReader } from '#libs/ports/event-log/event-log.js'
import { inboxKeyEventCodec, MASTER_KEY_SUBJECT } from '#libs/ports/event-log/codecs.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { KeyFollower } from './key-follower.js'
import { KeyForgottenError, KeyVaultUnavailableError, type KeyLookup, type KeyVault } from './key-vault.js'
import type { KeyEntry, KeyStatement, KeyView } from './key-view.js'
import { KeysAtHand } from './keys-at-hand.js'
import { MasterKeyMissingError, type MasterKeys, type WrappedKey } from './master-key.js'
import { Pulse } from './pulse.js'
import { makeSecretKey, type SecretKey } from './seal.js'

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
  /**
   * How often to append to each partition of inbox-keys, so that the brokers compact it though no inbox is made or
   * ends (HEARTBEAT_EVERY_MS): one process has to. Never where it is left out.
   */
  heartbeatEveryMs?: number
}

/** With the topic's configuration, a forgotten key leaves the disks of the brokers within half an hour. */
export const HEARTBEAT_EVERY_MS = 300_000

/** How long a caller waits for a view that is being caught up; that goes on behind it. */
const CATCH_UP_WITHIN_MS = 5_000

export class LoggedKeyVault implements KeyVault {
  private readonly creating = new Map<InboxId, Promise<SecretKey>>()
  private readonly atHand: KeysAtHand
  private readonly pulse: Pulse | null
  private isClosed = false

  /**
   * Rejects with MasterKeyMissingError if the master key that served new inboxes last is not configured, with
   * KeyVaultUnavailableError if the log or the view can't be reached. Takes both and leaves them open.
   */
  static async open(options: LoggedKeyVaultOptions): Promise<LoggedKeyVault> {
    const vault = new LoggedKeyVault(options, options.log.partitionCount('inbox-keys'))
    await vault.checkMasterKey()
    vault.follower.start()
    vault.pulse?.start()
    return vault
  }

  private readonly follower: KeyFollower

  private constructor(
    private readonly options: LoggedKeyVaultOptions,
    private readonly partitions: number,
  ) {
    const { log, view, masterKeys, now, onError, heartbeatEveryMs } = options
    this.atHand = new KeysAtHand(masterKeys, now)
    const settle = async (statements: readonly KeyStatement[]) => {
      await Promise.all(statements.map((statement) => this.append(eventOf(statement, now()))))
    }
    this.follower = new KeyFollower({ log, view, settle, onError }, partitions)
    this.pulse =
      heartbeatEveryMs === undefined
        ? null
        : new Pulse(
            { append: (event) => this.append(event), everyMs: heartbeatEveryMs, now, onError },
            partitions,
          )
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
    const key = this.atHand.get(inboxId)
    if (key !== null) return { state: 'known', key }
    return this.reach(`the key of ${inboxId}`, async () => {
      let [entry] = await this.look(partitionOf(inboxId, this.partitions), [inboxId])
      if (entry?.state === 'absent') {
        await this.catchUp(partitionOf(inboxId, this.partitions))
        ;[entry] = await this.look(partitionOf(inboxId, this.partitions), [inboxId])
      }
      return entry
    }).then((entry) => this.lookupOf(inboxId, entry))
  }

  async forget(inboxIds: readonly InboxId[]): Promise<void> {
    const byPartition = Map.groupBy(new Set(inboxIds), (inboxId) => partitionOf(inboxId, this.partitions))
    await this.reach('a record that keys are forgotten', () =>
      Promise.all([...byPartition].map(([partition, ids]) => this.forgetIn(partition, ids))),
    )
    for (const inboxId of inboxIds) this.atHand.drop(inboxId)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([this.follower.stop(), this.pulse?.stop()])
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
      if (!isThere) await this.append(wrappedEvent(inboxId, key))
      const taken = await view.take(partition, inboxId, key)
      // The log's last word must be what stands, before anything is sealed with it.
      if (taken.wasContested) await this.append(eventOf({ inboxId, says: taken.stands }, this.options.now()))
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
    const forgottenAt = this.options.now()
    await Promise.all(left.map((inboxId) => this.append({ type: 'InboxKeyForgotten', inboxId, forgottenAt })))
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
      this.atHand.drop(inboxId)
      return { state: 'forgotten' }
    }
    return { state: 'known', key: this.atHand.unwrap(inboxId, entry.key) }
  }

  /** The last master key that served new inboxes is one of those configured; from now on it is the current one. */
  private async checkMasterKey(): Promise<void> {
    const { view, masterKeys } = this.options
    const partition = partitionOf(MASTER_KEY_SUBJECT, this.partitions)
    await this.reach('which master key serves new inboxes', async () => {
      await this.follower.catchUp(partition)
      const { standing } = await view.find(partition, [])
      const last = standing?.masterKeyId ?? null
      if (last !== null) masterKeys.mustHave(last)
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
    const { partitions } = await log.topology('inbox-keys')
    const range = partitions.find((candidate) => candidate.partition === partition)
    if (range === undefined) throw new RangeError(`inbox-keys has no partition ${partition}`)
    let next = Math.max(range.first, from)
    for await (const records of log.read({ ...range, first: next })) {
      const batch = { topic: range.topic, partition, from: next, next: range.end, records }
      const { events } = decodeBatch(inboxKeyEventCodec, batch, this.partitions)
      next = (records.at(-1)?.offset ?? next) + 1
      const first = events.map(({ recorded }) => recorded.event).find(({ type }) => type === 'MasterKeyTaken')
      if (first?.type !== 'MasterKeyTaken') continue
      if (!masterKeys.has(first.masterKeyId)) await this.append(first)
      masterKeys.mustHave(first.masterKeyId)
      return
    }
  }

  private async append(event: InboxKeyEvent): Promise<void> {
    const occurrence = { id: mintId('evt'), time: this.options.now(), source: SOURCE, event }
    await this.options.log.append('inbox-keys', inboxKeyEventCodec.encode(occurrence))
  }

  private async reach<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    if (this.isClosed) throw new KeyVaultUnavailableError(`${what} is out of reach: the vault is closed`)
    return work().catch(unavailable(what))
  }
}

const SOURCE = '/mayfly/key-vault'

/** Whatever is wrong with the log or the view, a newer record too: none of it says that a key is not there. */
function unavailable(what: string): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof MasterKeyMissingError) throw cause
    const reason = messageOf(cause)
    throw new KeyVaultUnavailableError(`${what} is out of reach: ${reason}`, { cause })
  }
}

function wrappedEvent(inboxId: InboxId, { masterKeyId, wrapped }: WrappedKey): InboxKeyEvent {
  return { type: 'InboxKeyWrapped', inboxId, masterKeyId, wrapped }
}

function eventOf({ inboxId, says }: KeyStatement, now: Date): InboxKeyEvent {
  return says.state === 'forgotten'
    ? { type: 'InboxKeyForgotten', inboxId, forgottenAt: now }
    : wrappedEvent(inboxId, says.key)
}
