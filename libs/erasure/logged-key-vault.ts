import { setTimeout as pause } from 'node:timers/promises'
import { type EventLog } from '#libs/event-log/event-log.js'
import { encodeKeyRecord, type KeyRecord } from '#libs/event-log/key-records.js'
import { partitionOf } from '#libs/event-log/partitioner.js'
import { mintId } from '#libs/typeid/mint.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import { KeyFollower } from './key-follower.js'
import { KeyForgottenError, KeyVaultUnavailableError, type KeyLookup, type KeyVault } from './key-vault.js'
import type { KeyEntry, KeyView } from './key-view.js'
import type { MasterKeys, WrappedKey } from './master-key.js'
import { makeSecretKey, type SecretKey } from './seal.js'

export interface LoggedKeyVaultOptions {
  log: Pick<EventLog, 'append' | 'read' | 'topology'>
  view: KeyView
  masterKeys: MasterKeys
  now: () => Date
  /** Told of faults in the background, each of which is tried again. */
  onError: (error: unknown, during: string) => void
  /** Whether this process keeps the view up with the log: some process must. */
  isFollowing: boolean
  /** Whether this process keeps idle partitions from holding what was forgotten on the disk: some process must. */
  isBeating: boolean
}

interface AtHand {
  key: SecretKey
  wrapped: WrappedKey
  confirmedAtMs: number
}

/** Keys that were found last: to unwrap one costs more than to seal a mail with it. */
const MOST_AT_HAND = 10_000
/** Within it a key that another process forgets may still be used here. */
const CONFIRMED_FOR_MS = 2_000
const FOLLOW_EVERY_MS = 1_000
/** Often enough that a segment of inbox-keys ends soon after its time (INBOX_KEYS_COMPACTION). */
const BEAT_EVERY_MS = 240_000
/** Appends of one call under way at once. */
const FORGET_AT_ONCE = 500

/**
 * Inbox keys on the topic inbox-keys, found through a view.
 *
 * A key is durable on the log, then in the view. Compaction keeps an inbox's last record, so there must never be two
 * keys of one inbox: ids are minted by the process that makes the key, and where an append may have succeeded
 * although it failed, a repeat appends the same key again.
 */
export class LoggedKeyVault implements KeyVault {
  private readonly atHand = new Map<InboxId, AtHand>()
  private readonly making = new Map<InboxId, Promise<SecretKey>>()
  /** Keys whose append failed: they may stand on the log. */
  private readonly uncertain = new Map<InboxId, SecretKey>()
  private readonly follower: KeyFollower
  private readonly stopping = new AbortController()
  private background: Promise<unknown> = Promise.resolve()

  /** Rejects where the view is out of reach, with MasterKeyMissingError where its keys would not open. */
  static async open(options: LoggedKeyVaultOptions): Promise<LoggedKeyVault> {
    const { view, masterKeys } = options
    const vault = new LoggedKeyVault(options)
    if (options.isFollowing) await vault.follower.followAll()
    const sample = await view.anyWrapped()
    if (sample !== null) masterKeys.mustHave(sample.masterKeyId)
    vault.start()
    return vault
  }

  private constructor(private readonly options: LoggedKeyVaultOptions) {
    this.follower = new KeyFollower(options)
  }

  create(inboxId: InboxId): Promise<SecretKey> {
    let making = this.making.get(inboxId)
    if (making === undefined) {
      making = this.make(inboxId).finally(() => this.making.delete(inboxId))
      this.making.set(inboxId, making)
    }
    return making
  }

  async find(inboxId: InboxId): Promise<KeyLookup> {
    const known = this.atHand.get(inboxId)
    if (known !== undefined && performance.now() - known.confirmedAtMs < CONFIRMED_FOR_MS) {
      return { state: 'known', key: known.key }
    }
    const entry = await this.entryOf(inboxId)
    return entry === null ? { state: 'unknown' } : this.read(inboxId, entry)
  }

  async forget(inboxIds: readonly InboxId[]): Promise<void> {
    const forgottenAt = this.options.now()
    for (let at = 0; at < inboxIds.length; at += FORGET_AT_ONCE) {
      const ids = inboxIds.slice(at, at + FORGET_AT_ONCE)
      await Promise.all(
        ids.map((inboxId) => this.append(inboxId, { type: 'KeyForgotten', inboxId, forgottenAt })),
      )
      await this.options.view.forget(ids)
      for (const inboxId of ids) this.atHand.delete(inboxId)
    }
  }

  async close(): Promise<void> {
    this.stopping.abort()
    await Promise.allSettled([this.background, ...this.making.values()])
  }

  private async make(inboxId: InboxId): Promise<SecretKey> {
    const existing = await this.options.view.find(inboxId)
    if (existing !== null) return this.mustBeKnown(inboxId, existing)
    const key = this.uncertain.get(inboxId) ?? makeSecretKey()
    const wrapped = this.options.masterKeys.wrap(inboxId, key)
    keepFew(this.uncertain, inboxId, key)
    await this.append(inboxId, { type: 'KeyWrapped', inboxId, ...wrapped })
    const stands = await this.options.view.add(inboxId, wrapped)
    this.uncertain.delete(inboxId)
    return this.mustBeKnown(inboxId, stands)
  }

  private mustBeKnown(inboxId: InboxId, entry: KeyEntry): SecretKey {
    const found = this.read(inboxId, entry)
    if (found.state !== 'known') throw new KeyForgottenError(inboxId)
    return found.key
  }

  /** What the view does not know may have come to the log since it was last followed. */
  private async entryOf(inboxId: InboxId): Promise<KeyEntry | null> {
    const { view } = this.options
    const entry = await view.find(inboxId)
    if (entry !== null) return entry
    await this.follower.followFor(inboxId)
    return view.find(inboxId)
  }

  private read(inboxId: InboxId, entry: KeyEntry): KeyLookup {
    const known = this.atHand.get(inboxId)
    this.atHand.delete(inboxId)
    if (entry === 'forgotten') return { state: 'forgotten' }
    const isSame = known !== undefined && Buffer.compare(known.wrapped.wrapped, entry.wrapped) === 0
    const key = isSame ? known.key : this.options.masterKeys.unwrap(inboxId, entry)
    keepFew(this.atHand, inboxId, { key, wrapped: entry, confirmedAtMs: performance.now() })
    return { state: 'known', key }
  }

  private async append(key: string, record: KeyRecord): Promise<void> {
    const { log, now } = this.options
    const origin = { id: mintId('evt'), time: now(), source: '/mayfly/keys' }
    try {
      await log.append('inbox-keys', encodeKeyRecord(key, record, origin))
    } catch (cause) {
      throw new KeyVaultUnavailableError(`a record of ${key} could not be stored`, { cause })
    }
  }

  private start(): void {
    const { isFollowing, isBeating } = this.options
    this.background = Promise.all([
      isFollowing
        ? this.repeat(FOLLOW_EVERY_MS, 'following the keys', () => this.follower.followAll())
        : null,
      isBeating ? this.repeat(BEAT_EVERY_MS, 'a heartbeat of the keys', () => this.beat()) : null,
    ])
  }

  private async repeat(everyMs: number, name: string, work: () => Promise<void>): Promise<void> {
    const { signal } = this.stopping
    const next = () => pause(everyMs, true, { signal, ref: false }).catch(() => false)
    while (await next()) await work().catch((error: unknown) => this.options.onError(error, name))
  }

  private async beat(): Promise<void> {
    const { partitions } = await this.options.log.topology('inbox-keys')
    const record = { type: 'KeysHeartbeat', beatAt: this.options.now() } as const
    await Promise.all(
      partitions.map((_, partition) => this.append(beatKey(partition, partitions.length), record)),
    )
  }
}

/** A key that lies in a partition: always the same one, so that compaction keeps one beat. */
function beatKey(partition: number, partitions: number): string {
  for (let n = 0; ; n += 1)
    if (partitionOf(`heartbeat-${n}`, partitions) === partition) return `heartbeat-${n}`
}

function keepFew<Value>(map: Map<InboxId, Value>, inboxId: InboxId, value: Value): void {
  const [oldest] = map.keys()
  if (oldest !== undefined && map.size >= MOST_AT_HAND) map.delete(oldest)
  map.set(inboxId, value)
}
