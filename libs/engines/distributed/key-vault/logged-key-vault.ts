import { LRUCache } from 'lru-cache'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { inboxKeyEventCodec, MASTER_KEY_SUBJECT } from '#libs/ports/event-log/cloud-event.js'
import type { LogAppender, LogReader } from '#libs/ports/event-log/event-log.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { messageOf } from '#libs/runtime/errors.js'
import { beforeDeadline, DeadlineError, PeriodicTask } from '#libs/runtime/timing.js'
import { makeSecretKey, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import { KeyFollower } from './key-follower.js'
import {
  KeyForgottenError,
  KeyVaultUnavailableError,
  type KeyLookup,
  type KeyOwner,
  type KeyVault,
} from '#libs/ports/key-vault/key-vault.js'
import type {
  KeyEntry,
  KeyStatement,
  KeyView,
} from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'
import { MasterKeyMissingError, type MasterKeys } from '#libs/ports/key-vault/master-key.js'

/*
 * The keys of inboxes, accounts and members on the compacted topic inbox-keys, with a view in a fast store.
 * docs/decisions/0010-inbox-keys-on-the-log.md explains why a key that sealed something is never replaced, and what
 * happens if the view is lost or restored.
 */

export interface LoggedKeyVaultOptions {
  log: LogAppender & LogReader
  view: KeyView
  masterKeys: MasterKeys
  now: () => Date
  /** Called for failures of background work, which is retried. */
  onError: (error: unknown, during: string) => void
  /** How often to append a heartbeat to each partition (HEARTBEAT_EVERY_MS), which one process must do; never by default. */
  heartbeatEveryMs?: number
}

/** A recently used key. Unwrapping a key takes longer than sealing a mail with it. */
interface CachedKey {
  wrapped: Uint8Array
  key: SecretKey
  /** When the view last had this key for the owner. */
  confirmedAtMs: number
}

/** With the topic's configuration, a forgotten key is deleted from the brokers' disks within half an hour. */
export const HEARTBEAT_EVERY_MS = 300_000

/** How long a caller waits for the view to catch up. The catch-up continues after that. */
const CATCH_UP_WITHIN_MS = 5_000
const MAX_CACHED_KEYS = 10_000
/** How long a process may open mail with a key that another process has forgotten. */
const CACHE_MS = 2_000

/**
 * Rejects with MasterKeyMissingError if the last current master key is not configured, and with KeyVaultUnavailableError
 * if the log or the view is unavailable. Does not close the log or the view.
 */
export async function openLoggedKeyVault({
  log,
  view,
  masterKeys,
  now,
  onError,
  heartbeatEveryMs,
}: LoggedKeyVaultOptions): Promise<KeyVault> {
  const partitions = log.partitionCount('inbox-keys')
  const creating = new Map<KeyOwner, Promise<SecretKey>>()
  const cache = new LRUCache<KeyOwner, CachedKey>({ max: MAX_CACHED_KEYS })
  const follower = new KeyFollower({ log, view, settle, onError }, partitions)
  const heartbeats =
    heartbeatEveryMs === undefined ? null : new PeriodicTask({ everyMs: heartbeatEveryMs, work: beat })
  let isClosed = false
  await checkMasterKey()
  follower.start()
  heartbeats?.start()

  return {
    create(owner) {
      const promise = creating.get(owner) ?? create(owner).finally(() => creating.delete(owner))
      creating.set(owner, promise)
      return promise
    },

    async find(owner) {
      const cached = cache.get(owner)
      const ageMs = now().getTime() - (cached?.confirmedAtMs ?? -Infinity)
      if (cached !== undefined && ageMs >= 0 && ageMs < CACHE_MS) return { state: 'known', key: cached.key }
      const partition = partitionOf(owner, partitions)
      const entry = await reach(`the key of ${owner}`, async () => {
        const [first] = await entriesOf(partition, [owner])
        if (first?.state !== 'absent') return first
        await catchUp(partition)
        const [second] = await entriesOf(partition, [owner])
        return second
      })
      return lookupOf(owner, entry)
    },

    async forget(owners) {
      const byPartition = Map.groupBy(new Set(owners), (owner) => partitionOf(owner, partitions))
      await reach('the log of forgotten keys', () =>
        Promise.all([...byPartition].map(([partition, ids]) => forgetIn(partition, ids))),
      )
      for (const owner of owners) cache.delete(owner)
    },

    async close() {
      isClosed = true
      await Promise.all([follower.stop(), heartbeats?.stop()])
      await Promise.allSettled(creating.values())
    },
  }

  async function create(owner: KeyOwner): Promise<SecretKey> {
    const partition = partitionOf(owner, partitions)
    const entry = await reach(`the key of ${owner}`, async () => {
      // The log is not read to its end: a key in a record that no process has read has not sealed anything.
      const [found] = await entriesOf(partition, [owner])
      if (found?.state === 'forgotten') return found
      const exists = found?.state === 'wrapped'
      const key = exists ? found.key : masterKeys.wrap(owner, makeSecretKey())
      if (!exists) await appendStatement({ owner, entry: { state: 'wrapped', key } })
      const taken = await view.take(partition, owner, key)
      // The last record on the log must be the key in use before anything is sealed with it.
      if (taken.wasContested) await appendStatement({ owner, entry: taken.entry })
      return taken.entry
    })
    const lookup = lookupOf(owner, entry)
    if (lookup.state !== 'known') throw new KeyForgottenError(owner)
    return lookup.key
  }

  async function forgetIn(partition: number, owners: readonly KeyOwner[]): Promise<void> {
    const entries = await entriesOf(partition, owners)
    const left = owners.filter((_, index) => entries[index]?.state !== 'forgotten')
    if (left.length === 0) return
    await settle(left.map((owner) => ({ owner, entry: { state: 'forgotten' } })))
    await view.forget(partition, left)
  }

  /** The view's entries, once the view is trusted. */
  async function entriesOf(partition: number, owners: readonly KeyOwner[]): Promise<KeyEntry[]> {
    const found = await view.find(partition, owners)
    if (follower.trusts(partition, found.progress)) return found.entries
    await catchUp(partition)
    const again = await view.find(partition, owners)
    if (follower.trusts(partition, again.progress)) return again.entries
    throw new Error(`the view of inbox-keys/${partition} was lost again`)
  }

  async function catchUp(partition: number): Promise<void> {
    try {
      await beforeDeadline(CATCH_UP_WITHIN_MS, follower.catchUp(partition))
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error
      throw new Error(`the view of inbox-keys/${partition} is still catching up`, { cause: error })
    }
  }

  /** Unwraps a key that the view has just returned. */
  function lookupOf(owner: KeyOwner, entry: KeyEntry | undefined): KeyLookup {
    if (entry === undefined || entry.state === 'absent') return { state: 'unknown' }
    if (entry.state === 'forgotten') {
      cache.delete(owner)
      return { state: 'forgotten' }
    }
    const { wrapped } = entry.key
    const cached = cache.get(owner)
    const isSame = cached !== undefined && Buffer.compare(cached.wrapped, wrapped) === 0
    const key = isSame ? cached.key : masterKeys.unwrap(owner, entry.key)
    cache.set(owner, { wrapped, key, confirmedAtMs: now().getTime() })
    return { state: 'known', key }
  }

  /** Checks that the last current master key is configured, and makes the configured one current. */
  async function checkMasterKey(): Promise<void> {
    const partition = partitionOf(MASTER_KEY_SUBJECT, partitions)
    await reach('the current master key', async () => {
      await follower.catchUp(partition)
      const { progress } = await view.find(partition, [])
      const last = progress?.masterKeyId ?? null
      if (last !== null) masterKeys.require(last)
      if (last === masterKeys.current) return
      await append({ type: 'MasterKeyTaken', masterKeyId: masterKeys.current })
      await requireFirstTaken(partition, progress?.next ?? 0)
    })
  }

  /**
   * If several processes start at the same time with different master keys, the first one on the log wins. The others
   * don't start, and append the winner's event again so that it stays the last one.
   */
  async function requireFirstTaken(partition: number, from: number): Promise<void> {
    const { range } = await follower.rangeOf(partition)
    let next = Math.max(range.first, from)
    for await (const records of log.read({ ...range, first: next })) {
      const batch = { topic: range.topic, partition, from: next, next: range.end, records }
      const { events } = decodeBatch(inboxKeyEventCodec, batch, partitions)
      next = (records.at(-1)?.offset ?? next) + 1
      const first = events.map(({ recorded }) => recorded.event).find(({ type }) => type === 'MasterKeyTaken')
      if (first?.type !== 'MasterKeyTaken') continue
      if (!masterKeys.has(first.masterKeyId)) await append(first)
      masterKeys.require(first.masterKeyId)
      return
    }
  }

  /**
   * Appends a small record to each partition. Without it, a forgotten key of an idle partition would stay on the brokers'
   * disks: they compact a segment only after it is closed, and close it only at an append. Heartbeats are also sent if no
   * key was forgotten, since what counts is the age of the segment. Compaction keeps one of them.
   */
  async function beat(): Promise<void> {
    const beatAt = now()
    const pulses = Array.from({ length: partitions }, (_, partition) => pulseOf(partition, partitions))
    try {
      await Promise.all(pulses.map((pulse) => append({ type: 'KeysHeartbeat', pulse, beatAt })))
    } catch (error) {
      onError(error, 'appending heartbeats to inbox-keys')
    }
  }

  async function settle(statements: readonly KeyStatement[]): Promise<void> {
    await Promise.all(statements.map(appendStatement))
  }

  function appendStatement({ owner, entry }: KeyStatement): Promise<void> {
    if (entry.state === 'wrapped') return append({ type: 'InboxKeyWrapped', inboxId: owner, ...entry.key })
    return append({ type: 'InboxKeyForgotten', inboxId: owner, forgottenAt: now() })
  }

  async function append(event: InboxKeyEvent): Promise<void> {
    const occurrence = { id: mintId('evt'), time: now(), source: '/mayfly/key-vault', event }
    await log.append('inbox-keys', inboxKeyEventCodec.encode(occurrence))
  }

  async function reach<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    if (isClosed) throw new KeyVaultUnavailableError(`${what} is unavailable: the vault is closed`)
    try {
      return await work()
    } catch (cause) {
      // A failure of the log or the view, or a newer record, must not be mistaken for a missing key.
      if (cause instanceof MasterKeyMissingError) throw cause
      throw new KeyVaultUnavailableError(`${what} is unavailable: ${messageOf(cause)}`, { cause })
    }
  }
}

/** The record key of a partition's heartbeats: always the same, so that compaction keeps one of them. */
function pulseOf(partition: number, partitions: number): string {
  for (let n = 0; ; n += 1) {
    const pulse = `heartbeat-${n}`
    if (partitionOf(pulse, partitions) === partition) return pulse
  }
}
