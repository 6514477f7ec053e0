import { reach, reachAll } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import {
  isOwnerEnd,
  ReadModelUnavailableError,
  type Change,
  type OwnerEnd,
  type RowChange,
  type Step,
  type StepOutcome,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { beginPartition, idsIn } from './begin-partition.js'
import {
  contentKeysHeld,
  contentKeysOf,
  removeContents,
  StepWrites,
  WRITE,
  writeContents,
} from './changes.js'
import { viewKeys } from './keys.js'
import { redisQueries } from './queries.js'

/*
 * Relies on Redis 7 with `maxmemory-policy noeviction`, since views would lose keys unnoticed otherwise. A script is applied
 * as a whole, also on replicas and in the append-only file. With full memory, Redis rejects a script before its first
 * write, unless that is a removal. If Redis loses its last second, or is restored from an older copy, all keys of a
 * partition go back together, including its position, because they are in one slot of a Cluster. The projector continues
 * from there. Only contents expire, some time after their inbox.
 */

export interface RedisViewStoreOptions {
  /** The caller closes both. `bulk` is used for values as large as a mail. */
  client: RedisClient
  bulk: RedisClient
  /** The prefix of every key. Must have no braces, which would replace the hash tag. */
  prefix: string
  partitions: number
}

const MAX_AT_ONCE = 500
/** Attempts to apply a step if a node of a Cluster is replaced after the contents were written, which is rare. */
const MAX_ATTEMPTS = 4

/** The views in Redis. Sends no command until it is used. */
export function redisViewStore({ client, bulk, prefix, partitions }: RedisViewStoreOptions): ViewStore {
  const keys = viewKeys(prefix, partitions)
  const queries = redisQueries(client, bulk, keys)

  return {
    partitions,
    log: null,

    async progress({ topic, partition }) {
      const progressKey = keys.progress({ topic, partition })
      const names = ['log', 'position', 'target', 'begun']
      const [logId, position, target, begun] = await reach(() => client.hmget(progressKey, ...names))
      if (logId == null || position == null || target == null) return null
      const begunAtMs = Number(begun)
      return { topic, partition, logId, position: Number(position), target: Number(target), begunAtMs }
    },

    begin: (logId, range, aheadAt) => beginPartition(client, keys, logId, range, aheadAt),

    async apply(step): Promise<StepOutcome> {
      if (step.contents.length > 0 || step.changes.length > 0) {
        // The script checks this too. Checking first avoids writing the contents of a step that is rejected.
        const position = await reach(() => client.hget(keys.progress(step), 'position'))
        if (position === null) return 'absent'
        if (position !== String(step.from)) return { position: Number(position) }
      }
      await Promise.all(step.changes.filter(isOwnerEnd).map((end) => removeBeforeEnd(step.partition, end)))
      await writeLookups(step)
      const outcome = await applyWithContents(step)
      if (outcome === 'absent') return 'absent'
      if (outcome !== 'applied') return { position: Number(outcome) }
      await removeContents(client, removedContentsOf(step.changes))
      return 'applied'
    },

    async write({ partition }, changes) {
      if (changes.length === 0) return
      const { keys: all, args } = writesOf(partition, changes).forScript([])
      await reach(() => WRITE_ONLY.run(client, all, args))
      await removeContents(client, removedContentsOf(changes))
    },

    ...queries,

    async *keysOf(table) {
      for (const partition of keys.partitionsOf(table)) {
        yield* idsIn(client, keys.rows(table, partition, null), MAX_AT_ONCE)
      }
    },

    /**
     * The key is written before its row, and stays when the views are emptied. Without a valid key the partitions are
     * searched, because a node of a Cluster may lose its last writes when the others do not. It is then written again.
     */
    async lookup(index, text, isValid) {
      const lookupKey = keys.lookup(index, text)
      const known = await reach(() => client.get(lookupKey))
      if (known !== null && (await isValid(known))) return known
      const range = { group: [], from: text, to: `${text}!`, order: 'desc', limit: 1 } as const
      const found = await queries.entries(
        index,
        keys.partitionsOf(index).map((partition) => ({ ...range, partition })),
      )
      const [key] = found
        .flatMap(([last]) => last?.key ?? [])
        .sort()
        .reverse()
      if (key === undefined) return null
      await reach(() => client.set(lookupKey, key))
      return (await isValid(key)) ? key : null
    },
  }

  function writesOf(partition: number, changes: readonly Change[]): StepWrites {
    const writes = new StepWrites(keys, partition)
    for (const change of changes) writes.addChange(change)
    return writes
  }

  /** Writes the contents, then runs the script. Repeats both if the node that runs the script lacks contents. */
  async function applyWithContents(step: Step): Promise<unknown> {
    const writes = writesOf(step.partition, step.changes)
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      await writeContents(bulk, keys, step.contents)
      const contentKeys = contentKeysHeld(keys, step.contents)
      const { keys: all, args } = writes.forScript([keys.progress(step), ...contentKeys])
      const given = [step.from, step.to, contentKeys.length, ...args]
      const outcome = await reach(() => APPLY.run(client, all, given))
      if (outcome !== 'incomplete') return outcome
    }
    throw new ReadModelUnavailableError('Redis has lost the contents of a step several times')
  }

  /**
   * Removes the contents of an owner's rows, and their entries in lists that are not the owner's, before the step, which
   * removes the rows. They are removed in chunks, because there may be many. Until the step is applied, the rows are shown
   * without contents, which can't be decrypted any more anyway.
   */
  async function removeBeforeEnd(partition: number, { table, owner, removalsOf }: OwnerEnd): Promise<void> {
    const hash = keys.rows(table, partition, owner)
    for await (const ids of idsIn(client, hash, MAX_AT_ONCE)) {
      const found = await queries.rows(
        table,
        ids.map((key) => ({ owner, key })),
      )
      const writes = new StepWrites(keys, partition)
      const removals = removalsOf(found.filter((row) => row !== null))
      for (const removal of removals) {
        const inLists = removal.remove.filter(({ index }) => !index.isOwned)
        for (const entry of inLists) writes.removeEntry(entry)
      }
      const { keys: all, args } = writes.forScript([])
      if (args.length > 0) await reach(() => WRITE_ONLY.run(client, all, args))
      await removeContents(client, removedContentsOf(removals))
    }
  }

  function removedContentsOf(changes: Step['changes']): string[] {
    return changes
      .filter((change): change is RowChange => !isOwnerEnd(change) && change.removesContents)
      .flatMap(({ table, key }) => contentKeysOf(keys, table, key))
  }

  /** A lookup is in another slot of a Cluster, so it is written before the step. It is valid once the row exists. */
  async function writeLookups({ changes }: Step): Promise<void> {
    const made = changes.flatMap((change) =>
      isOwnerEnd(change) ? [] : change.put.filter(({ index }) => index.kind === 'lookup'),
    )
    for (const some of chunksOf(made, MAX_AT_ONCE)) {
      await reachAll(some, ({ index, entry }) =>
        SET_NEWEST.run(client, [keys.lookup(index, String(entry.sort))], [entry.key]),
      )
    }
  }
}

/** Ids are ordered by time. After a rebuild, an older row may be written last. */
const SET_NEWEST = new Script(`
local known = redis.call('GET', KEYS[1])
if not known or known < ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
`)

const WRITE_ONLY = new Script(`${WRITE}
write(1)
`)

/**
 * If the position is `from`, executes the writes and moves it to `to`. Returns `applied`; the position, if it is another one;
 * `absent`; or `incomplete`, if a key of contents is missing, which may have been written to a node that was replaced.
 * Keys: progress, keys of contents, keys of the writes. Arguments: from, to, number of content keys, the writes. Offsets are
 * compared as strings, because Lua's numbers lose digits.
 */
const APPLY = new Script(`${WRITE}
local position = redis.call('HGET', KEYS[1], 'position')
if not position then return 'absent' end
if position ~= ARGV[1] then return position end
for at = 2, 1 + tonumber(ARGV[3]) do
  if redis.call('EXISTS', KEYS[at]) == 0 then return 'incomplete' end
end
write(4)
redis.call('HSET', KEYS[1], 'position', ARGV[2])
return 'applied'
`)
