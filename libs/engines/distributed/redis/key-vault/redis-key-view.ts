import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script, type ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import { isKeyOwner, type KeyOwner } from '#libs/ports/key-vault/key-vault.js'
import type { WrappedKey } from '#libs/ports/key-vault/master-key.js'
import { chunksOf } from '#libs/runtime/chunks.js'

/*
 * A view of the keys of inboxes, accounts and members. If it is lost or restored from an older copy, it is rebuilt from
 * the log. A key is in the partition of its owner's id. A forgotten key stays forgotten. A key in use is never replaced.
 * A key that was only read from the log is replaced by a later record, as compaction does. Errors:
 * `ReadModelUnavailableError`; a change may have been made nevertheless.
 *
 * Relies on Redis 7 with noeviction, one node or a Cluster, and on atomic scripts. Redis may lose acknowledged writes (a
 * crash, a failover to a replica), because all of them are on the log.
 *
 * | key                    | type | holds                                              |
 * | ---------------------- | ---- | -------------------------------------------------- |
 * | {p<n>}:slot:inbox-keys | hash | log, next, master-key: the position of a partition |
 * | {p<n>}:inbox-keys      | hash | owner → value,    as described before the scripts  |
 */

export type KeyView = ReturnType<typeof redisKeyView>

/** The entry of a view for an owner's key. An absent key may exist on the log. */
export type KeyEntry = { state: 'wrapped'; key: WrappedKey } | { state: 'forgotten' } | { state: 'absent' }

/** How far a partition's view has applied a log. Entries that `take` and `forget` have written may be ahead of it. */
export interface KeyViewProgress {
  logId: string
  /** Offset of the first record that has not been applied. */
  next: number
  /** The master key for new keys, according to the applied records. */
  masterKeyId: string | null
}

export interface KeyStatement {
  owner: KeyOwner
  entry: Exclude<KeyEntry, { state: 'absent' }>
}

/** A step of a partition's view along the log, with the records in between, in order. */
export interface KeyStep {
  partition: number
  logId: string
  from: number
  to: number
  statements: readonly KeyStatement[]
  /** Null if none of these records sets it. */
  masterKeyId: string | null
  /** Owners whose entry in the view has been appended to the log again, after these records. */
  settled: ReadonlySet<KeyOwner>
}

/**
 * Contested: the last of these records about an owner contradicts the view's entry. Compaction keeps the last record, so
 * the view does not move past it until its own entry has been appended after it. `moved`: the view is not at `from`.
 */
type KeyStepOutcome = 'applied' | 'moved' | { contested: KeyStatement[] }

/** The caller closes the client. */
export function redisKeyView({ client, prefix }: { client: RedisClient; prefix: string }) {
  const run = (script: Script, partition: number, args: readonly ScriptArgument[]) => {
    const tag = `${prefix}{p${partition}}`
    return reach(() => script.run(client, [`${tag}:slot:inbox-keys`, `${tag}:inbox-keys`], args))
  }

  return {
    /** The progress (null if the view was never begun, or is lost) and an entry for each id, from one snapshot. */
    async find(
      partition: number,
      owners: readonly KeyOwner[],
    ): Promise<{ progress: KeyViewProgress | null; entries: KeyEntry[] }> {
      const [logId, next, masterKeyId, ...values] = listOf(await run(FIND, partition, owners))
      const entries = owners.map((_, index): KeyEntry => {
        const value = values[index] ?? null
        return value === null ? { state: 'absent' } : entryOf(value)
      })
      if (logId == null || next == null) return { progress: null, entries }
      return { progress: { logId, next: Number(next), masterKeyId: masterKeyId ?? null }, entries }
    },

    /**
     * Takes a key that is durable on the log into use, unless another key is in use or the key was forgotten. Resolves with
     * the entry from then on, and whether the view had a different one.
     */
    async take(
      partition: number,
      owner: KeyOwner,
      key: WrappedKey,
    ): Promise<{ entry: KeyStatement['entry']; wasContested: boolean }> {
      const wanted = textOf(key)
      const previous = textOrNull(await run(TAKE, partition, [owner, wanted]))
      const own = { state: 'wrapped', key } as const
      if (previous === null) return { entry: own, wasContested: false }
      const wasContested = previous.slice(1) !== wanted
      return { entry: previous.startsWith(FROM_LOG) ? own : entryOf(previous), wasContested }
    },

    /** Replaces each key with `forgotten`, permanently. That must already be durable on the log. */
    async forget(partition: number, owners: readonly KeyOwner[]): Promise<void> {
      await run(FORGET, partition, owners)
    },

    /** Starts to follow a log at an offset, unless the view's progress is no longer `seen`. Empties a view of another log. */
    async begin(
      partition: number,
      start: Pick<KeyViewProgress, 'logId' | 'next'>,
      seen: KeyViewProgress | null,
    ): Promise<void> {
      const position = seen === null ? ['', ''] : [seen.logId, seen.next]
      await run(BEGIN, partition, [...position, start.logId, start.next])
    },

    /** Compare and set: applies the whole step if the view is at `from` in this log; otherwise nothing. */
    async apply(step: KeyStep): Promise<KeyStepOutcome> {
      const { partition, logId, from, to, masterKeyId, settled, statements } = step
      const values = statements.flatMap(({ owner, entry }) => [
        owner,
        entry.state === 'forgotten' ? FORGOTTEN : textOf(entry.key),
      ])
      const args = [logId, from, to, masterKeyId ?? '', settled.size, ...settled, ...values]
      const answer = await run(APPLY, partition, args)
      if (answer === null) return 'moved'
      const contested = listOf(answer)
      return contested.length === 0 ? 'applied' : { contested: statementsIn(contested) }
    },
  }
}

const FORGOTTEN = 'f'
const IN_USE = 'u'
const FROM_LOG = 't'

function textOf({ masterKeyId, wrapped }: WrappedKey): string {
  return `${masterKeyId} ${Buffer.from(wrapped).toString('base64')}`
}

function entryOf(value: string): KeyStatement['entry'] {
  if (value === FORGOTTEN) return { state: 'forgotten' }
  const [masterKeyId = '', wrapped] = value.slice(1).split(' ')
  if (!(value.startsWith(IN_USE) || value.startsWith(FROM_LOG)) || wrapped === undefined) {
    throw new TypeError('a key in Redis is not in the format that Mayfly writes')
  }
  return { state: 'wrapped', key: { masterKeyId, wrapped: Buffer.from(wrapped, 'base64') } }
}

/** The statements in a list of ids, each followed by its value. */
function statementsIn(pairs: readonly (string | null)[]): KeyStatement[] {
  return Array.from(chunksOf(pairs, 2), ([id, value]) => {
    if (id == null || !isKeyOwner(id)) throw new TypeError('an id in Redis is of nothing that has a key')
    return { owner: id, entry: entryOf(value ?? '') }
  })
}

function listOf(answer: unknown): (string | null)[] {
  if (!Array.isArray(answer)) throw new TypeError('an answer of Redis is not a list')
  return answer.map(textOrNull)
}

function textOrNull(answer: unknown): string | null {
  if (answer !== null && typeof answer !== 'string') throw new TypeError('an answer of Redis is not a string')
  return answer
}

/*
 * The first key of each script is the partition's position, the second its keys by owner. A value is `f` (forgotten),
 * or a wrapped key after `u` (in use) or `t` (known from the log only). Offsets are compared as strings, because Lua's
 * numbers lose digits.
 */

/** Returns log, next, master key, and a value for each id. */
const FIND = new Script(`
local found = redis.call('HMGET', KEYS[1], 'log', 'next', 'master-key')
for i = 1, #ARGV do found[3 + i] = redis.call('HGET', KEYS[2], ARGV[i]) end
return found
`)

/** Arguments: owner, wrapped key. Returns the previous value. */
const TAKE = new Script(`
local previous = redis.call('HGET', KEYS[2], ARGV[1])
if not previous or string.sub(previous, 1, 1) == 't' then redis.call('HSET', KEYS[2], ARGV[1], 'u' .. ARGV[2]) end
return previous
`)

/** Removes before it writes, because a full Redis allows that: an erasure must not wait for memory. */
const FORGET = new Script(`
for i = 1, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], 'f')
end
`)

/** Arguments: log and next as they were read, empty if there were none; log and next to begin with. */
const BEGIN = new Script(`
local log, next = unpack(redis.call('HMGET', KEYS[1], 'log', 'next'))
if (log or '') ~= ARGV[1] or (next or '') ~= ARGV[2] then return end
if log ~= ARGV[3] then redis.call('UNLINK', KEYS[1], KEYS[2]) end
redis.call('HSET', KEYS[1], 'log', ARGV[3], 'next', ARGV[4])
`)

/**
 * Arguments: log, from, to, master key or empty, number of settled ids, the settled ids, then pairs of owner and value.
 * Returns false if the view has moved. Otherwise returns pairs of id and current value for each contested id. If there is
 * none, the view moves to `to`.
 */
const APPLY = new Script(`
local log, next = unpack(redis.call('HMGET', KEYS[1], 'log', 'next'))
if log ~= ARGV[1] or next ~= ARGV[2] then return false end
local settled, ids, current, differs = {}, {}, {}, {}
local at = 6 + tonumber(ARGV[5])
for i = 6, at - 1 do settled[ARGV[i]] = true end
for i = at, #ARGV, 2 do
  local id, value = ARGV[i], ARGV[i + 1]
  local held = current[id]
  if held == nil then
    held = redis.call('HGET', KEYS[2], id)
    ids[#ids + 1] = id
  end
  local put = held
  if value == 'f' then
    put = 'f'
  elseif not held or string.sub(held, 1, 1) == 't' then
    put = 't' .. value
  end
  if put ~= held then redis.call('HSET', KEYS[2], id, put) end
  current[id] = put
  differs[id] = put ~= value and string.sub(put, 2) ~= value
end
local contested = {}
for _, id in ipairs(ids) do
  if differs[id] and not settled[id] then
    contested[#contested + 1] = id
    contested[#contested + 1] = current[id]
  end
end
if #contested == 0 then
  redis.call('HSET', KEYS[1], 'next', ARGV[3])
  if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'master-key', ARGV[4]) end
end
return contested
`)
