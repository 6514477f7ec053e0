import { brand } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import {
  fewestFirst,
  type InboxCount,
  type LabelCountQuery,
  type LabelQuery,
  type LabelTotals,
} from '#libs/ports/read-model/queries.js'
import { countedPeriods, countPeriod } from '#libs/ports/read-model/index-entries.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { ViewKeys } from './keys.js'
import { reachEveryPartition } from './lists.js'

/*
 * How many messages the inboxes of a label have received: in each partition a sorted set with an entry for each inbox, and
 * a hash with the totals of each label and period.
 */

/** Digits of every number of messages, so that the order of the members is that of the numbers. */
const COUNT_DIGITS = 16

/** What the members and fields of a label begin with. As JSON, no scope is a prefix of another. */
export function labelCountScope({ accountId, environment }: MailOwner, name: string, value: string): string {
  return JSON.stringify([accountId, environment, name, value])
}

export function labelCountMember(inbox: Inbox, name: string, value: string): string {
  const scope = labelCountScope(inbox, name, value)
  return `${scope} ${countPeriod(inbox)} ${writeCount(inbox.receivedCount)} ${inbox.id}`
}

/** The fields of the totals of a period. */
export function totalFields(scope: string, period: string): { inboxes: string; received: string } {
  return { inboxes: `${scope} ${period} inboxes`, received: `${scope} ${period} received` }
}

export async function labelTotals(
  client: RedisClient,
  keys: ViewKeys,
  { name, value, now, ...owner }: LabelQuery,
): Promise<LabelTotals> {
  const args = [labelCountScope(owner, name, value), ...countedPeriods(now)]
  const sums = (await reachEveryPartition(keys, (partition) =>
    SUM.run(client, [keys.labelTotals(partition)], args),
  )) as [inboxes: number, received: number][]
  return {
    inboxes: sums.reduce((sum, [inboxes]) => sum + inboxes, 0),
    received: sums.reduce((sum, [, received]) => sum + received, 0),
  }
}

/** Returns the numbers of inboxes and messages of several periods. Arguments: the scope, the periods. */
const SUM = new Script(`
local inboxes, received = 0, 0
for at = 2, #ARGV do
  local field = ARGV[1] .. ' ' .. ARGV[at]
  local totals = redis.call('HMGET', KEYS[1], field .. ' inboxes', field .. ' received')
  inboxes = inboxes + tonumber(totals[1] or 0)
  received = received + tonumber(totals[2] or 0)
end
return {inboxes, received}
`)

export async function listLabelCounts(
  client: RedisClient,
  keys: ViewKeys,
  { name, value, now, from, to, limit, ...owner }: LabelCountQuery,
): Promise<InboxCount[]> {
  const scope = labelCountScope(owner, name, value)
  const range = [scope, writeCount(from), writeCount(to), limit, ...countedPeriods(now)]
  const found = (await reachEveryPartition(keys, (partition) =>
    LIST.run(client, [keys.labelCounts(partition)], range),
  )) as string[][]
  const lists = found.map((members) =>
    members.map((member): InboxCount => {
      const [received, inboxId = ''] = member.split(' ').slice(-2)
      return { inboxId: brand('inb', inboxId), received: Number(received) }
    }),
  )
  return fewestFirst(lists, limit)
}

/** Returns the first members of each period. Arguments: the scope, the first number, the end, the limit, the periods. */
const LIST = new Script(`
local found = {}
for at = 5, #ARGV do
  local start = '[' .. ARGV[1] .. ' ' .. ARGV[at] .. ' '
  local first, stop = start .. ARGV[2], start .. ARGV[3]
  local page = redis.call('ZRANGE', KEYS[1], first, stop, 'BYLEX', 'LIMIT', 0, ARGV[4])
  for _, member in ipairs(page) do found[#found + 1] = member end
end
return found
`)

function writeCount(received: number): string {
  return String(received).padStart(COUNT_DIGITS, '0')
}
