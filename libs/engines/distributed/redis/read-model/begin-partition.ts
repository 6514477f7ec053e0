import { reach, reachAll } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { TABLES } from '#libs/ports/read-model/tables.js'
import { VIEWS_FORM } from '#libs/ports/read-model/views-form.js'
import { contentKeysOf, StepWrites, WRITE } from './changes.js'
import type { ViewKeys } from './keys.js'

const OWNERS_PER_SCAN = 200
const ROWS_PER_SCAN = 500

/** Implements ViewStore.begin. */
export async function beginPartition(
  client: RedisClient,
  keys: ViewKeys,
  logId: string,
  range: PartitionRange,
  aheadAt?: number,
): Promise<number | { aheadAt: number }> {
  const progressKey = keys.progress(range)
  const args = [logId, VIEWS_FORM, range.first, range.end]
  for (;;) {
    const position = await reach(() => BEGIN.run(client, [progressKey], [...args, aheadAt ?? '']))
    if (Array.isArray(position)) return { aheadAt: Number(position[1]) }
    if (position !== 'absent') return Number(position)
    if (!(await emptyPartition(client, keys, range))) continue
    const all = [progressKey, ...keys.ofPartition(range)]
    if ((await reach(() => ESTABLISH.run(client, all, args))) === 'established') return range.first
  }
}

/**
 * Removes what each owner of rows has in a partition whose progress was removed, in many steps. If the process is killed
 * midway, the next process that begins removes the rest. Several processes may do it at once. Resolves with false if the
 * progress exists again: another process has finished first, and none of its new views was removed.
 */
export async function emptyPartition(
  client: RedisClient,
  keys: ViewKeys,
  partition: Partition,
): Promise<boolean> {
  for await (const writes of removals(client, keys, partition)) {
    const { keys: all, args } = writes.forScript([keys.progress(partition)])
    if ((await reach(() => EMPTY.run(client, all, args))) !== 'emptied') return false
  }
  return true
}

async function* removals(
  client: RedisClient,
  keys: ViewKeys,
  { topic, partition }: Partition,
): AsyncGenerator<StepWrites> {
  const tables = TABLES.filter((table) => table.topic === topic)
  const withContents = tables.filter(({ parts }) => parts.length > 0)
  for (const owners of tables.filter(({ name }) => tables.some(({ ownedBy }) => ownedBy === name))) {
    const hash = keys.rows(owners, partition, null)
    for await (const ids of idsIn(client, hash, OWNERS_PER_SCAN)) {
      for (const table of withContents) {
        const sizes = await reachAll(ids, (id) => client.hlen(keys.rows(table, partition, id)))
        for (const owner of ids.filter((_, index) => sizes[index] !== 0)) {
          for await (const some of idsIn(client, keys.rows(table, partition, owner), ROWS_PER_SCAN)) {
            const writes = new StepWrites(keys, partition)
            for (const key of some) {
              for (const each of contentKeysOf(keys, table, { owner, key })) writes.add('UNLINK', each)
            }
            yield writes
          }
        }
      }
      const writes = new StepWrites(keys, partition)
      for (const id of ids) {
        for (const key of keys.ofOwner({ topic, partition }, id)) writes.add('UNLINK', key)
        writes.add('HDEL', hash, id)
      }
      yield writes
    }
  }
}

/** The keys of the rows in a hash, about `count` at a time. A key may be yielded twice. */
export async function* idsIn(client: RedisClient, hash: string, count: number): AsyncGenerator<string[]> {
  let cursor = '0'
  do {
    const [next, fields] = await reach(() => client.hscan(hash, cursor, 'COUNT', count))
    // The answer has each key followed by its row.
    const ids = fields.filter((_, index) => index % 2 === 0)
    if (ids.length > 0) yield ids
    cursor = next
  } while (cursor !== '0')
}

/** Returns the server's time in milliseconds since 1970, or a later one so that it is after `than`. */
const LATER = `
local function later(than)
  local seconds, micros = unpack(redis.call('TIME'))
  return string.format('%.0f', math.max(seconds * 1000 + math.floor(micros / 1000), (tonumber(than) or 0) + 1))
end
`

/**
 * Sets the target of existing views of the log, and returns their position. If the position is past the end of the log, and
 * not equal to the last argument, changes nothing and returns a pair with the position. Otherwise removes the progress and
 * returns `absent`. Arguments: log, form, first, end, the position known to be past the end (or empty).
 */
const BEGIN = new Script(`${LATER}
local log, form, position, begun = unpack(redis.call('HMGET', KEYS[1], 'log', 'form', 'position', 'begun'))
if log == ARGV[1] and form == ARGV[2] and position then
  if tonumber(position) <= tonumber(ARGV[4]) then
    if tonumber(position) < tonumber(ARGV[3]) then position = ARGV[3] end
    redis.call('HSET', KEYS[1], 'position', position, 'target', ARGV[4], 'begun', later(begun))
    return position
  end
  if position ~= ARGV[5] then return {'ahead', position} end
end
redis.call('UNLINK', KEYS[1])
return 'absent'
`)

/** Removes keys of views that are being emptied. Returns `begun` if another process has already emptied them. */
const EMPTY = new Script(`${WRITE}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'begun' end
write(1)
return 'emptied'
`)

/** Removes the remaining keys, and creates the progress. Returns `begun` as EMPTY does. Arguments: as for BEGIN. */
export const ESTABLISH = new Script(`${LATER}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'begun' end
for at = 2, #KEYS do redis.call('UNLINK', KEYS[at]) end
local progress = {'log', ARGV[1], 'form', ARGV[2], 'position', ARGV[3], 'target', ARGV[4], 'begun', later(0)}
redis.call('HSET', KEYS[1], unpack(progress))
return 'established'
`)
