import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { dropMessages, StepWrites, WRITE } from './changes.js'
import { messagesOf } from './contents.js'
import type { ViewKeys } from './keys.js'
import { idsIn } from './lists.js'

/** Changes with what a key holds: views of another form are rebuilt from the log. */
const FORM = 2
const INBOXES_AT_ONCE = 200
const WEBHOOKS_AT_ONCE = 100

/** As ProjectionStore.begin. */
export async function beginPartition(
  client: RedisClient,
  keys: ViewKeys,
  logId: string,
  range: PartitionRange,
  aheadAt?: number,
): Promise<number | { aheadAt: number }> {
  const slot = keys.slot(range)
  const args = [logId, FORM, range.first, range.end]
  for (;;) {
    const standsAt = await reach(() => BEGIN.run(client, [slot], [...args, aheadAt ?? '']))
    if (Array.isArray(standsAt)) return { aheadAt: Number(standsAt[1]) }
    if (standsAt !== 'absent') return Number(standsAt)
    if (!(await emptyPartition(client, keys, range))) continue
    const all = [slot, ...keys.tables(range)]
    if ((await reach(() => ESTABLISH.run(client, all, args))) === 'established') return range.first
  }
}

/**
 * Removes what belongs to single inboxes or webhooks of a partition whose slot is gone, a little at a time. If it is
 * killed midway, the slot is still gone, and the next process to begin removes the rest; several share the work.
 * Resolves with false if the slot has come back meanwhile: another process was through first, and nothing that it has
 * built since was touched.
 */
export async function emptyPartition(
  client: RedisClient,
  keys: ViewKeys,
  partition: Partition,
): Promise<boolean> {
  for await (const writes of removals(client, keys, partition)) {
    const { keys: all, args } = writes.forScript([keys.slot(partition)])
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
    for await (const ids of idsIn<InboxId>(client, inboxes, INBOXES_AT_ONCE)) {
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
    for await (const ids of idsIn<WebhookId>(client, known, WEBHOOKS_AT_ONCE)) {
      const writes = new StepWrites()
      for (const webhookId of ids) {
        for (const key of keys.everyKeyOf(webhookId)) writes.add('UNLINK', key)
        writes.add('HDEL', known, webhookId)
      }
      yield writes
    }
  }
}

/** Milliseconds since 1970 by the server's clock, later than a time that is handed in. */
const LATER = `
local function later(than)
  local seconds, micros = unpack(redis.call('TIME'))
  return string.format('%.0f', math.max(seconds * 1000 + math.floor(micros / 1000), (tonumber(than) or 0) + 1))
end
`

/**
 * Begins to follow a log with the views that there are of it, and answers their position. If that is past the log's
 * end, changes nothing and answers it in a pair, unless it is the position handed in. If there are no such views,
 * removes the slot and answers `absent`. Arguments: log, form, first, end, the position known to be past it or nothing.
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

/** Writes to views that are being emptied; answers `begun` if another process has emptied them and gone on meanwhile. */
const EMPTY = new Script(`${WRITE}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'begun' end
write(1)
return 'emptied'
`)

/** Removes what is left (the other keys) and makes the slot; answers `begun` as EMPTY does. Arguments as for BEGIN. */
export const ESTABLISH = new Script(`${LATER}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'begun' end
for at = 2, #KEYS do redis.call('UNLINK', KEYS[at]) end
local slot = {'log', ARGV[1], 'form', ARGV[2], 'position', ARGV[3], 'target', ARGV[4], 'begun', later(0)}
redis.call('HSET', KEYS[1], unpack(slot))
return 'established'
`)
