import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { VIEWS_FORM } from '#libs/ports/read-model/views.js'
import { dropMessages, StepWrites, WRITE } from './changes.js'
import { messagesOf } from './contents.js'
import type { ViewKeys } from './keys.js'
import { idsIn } from './lists.js'

const INBOXES_PER_SCAN = 200
const WEBHOOKS_PER_SCAN = 100

/** Implements ProjectionStore.begin. */
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
    const all = [progressKey, ...keys.tables(range)]
    if ((await reach(() => ESTABLISH.run(client, all, args))) === 'established') return range.first
  }
}

/**
 * Removes the keys of each inbox or webhook of a partition whose progress was removed, in many steps. If the process is killed
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
  if (topic === 'inbox-events') {
    const inboxes = keys.inboxes(partition)
    for await (const ids of idsIn<InboxId>(client, inboxes, INBOXES_PER_SCAN)) {
      const sizes = await reach(() => Promise.all(ids.map((id) => client.hlen(keys.messages(id)))))
      for (const inboxId of ids.filter((_, index) => sizes[index] !== 0)) {
        for await (const messages of messagesOf(client, keys, inboxId)) {
          const writes = new StepWrites()
          for (const message of messages) {
            writes.add('UNLINK', keys.body(message))
            writes.add('UNLINK', keys.raw(message))
          }
          yield writes
        }
      }
      const writes = new StepWrites()
      for (const inboxId of ids) {
        dropMessages(writes, keys, inboxId)
        writes.add('UNLINK', keys.history(inboxId))
        writes.add('HDEL', inboxes, inboxId)
      }
      yield writes
    }
  }
  if (topic === 'webhook-events') {
    const known = keys.webhookHealth(partition)
    for await (const ids of idsIn<WebhookId>(client, known, WEBHOOKS_PER_SCAN)) {
      const writes = new StepWrites()
      for (const webhookId of ids) {
        for (const key of keys.everyKeyOf(webhookId)) writes.add('UNLINK', key)
        writes.add('HDEL', known, webhookId)
      }
      yield writes
    }
  }
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
