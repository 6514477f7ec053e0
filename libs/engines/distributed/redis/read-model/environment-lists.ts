import { brand } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { EnvironmentQuery } from '#libs/ports/read-model/queries.js'
import type { EnvironmentEnding, EnvironmentMessage, MailOwner } from '#libs/ports/read-model/views.js'
import type { ViewKeys } from './keys.js'
import { decodeHistoryEntry } from './rows.js'

/*
 * The messages of each environment, and the ends of messages and inboxes: two sorted sets in each partition, with the
 * account, the environment and the offset in front of each member. The sets of a partition are emptied as a whole, and
 * what an environment has in one of them is one range.
 */

/** Hexadecimal digits of every offset, so that the order of the members is that of the log. */
const OFFSET_DIGITS = 14
const REMOVED_AT_ONCE = 500

/** A message as a member of the set. Has only fields that never change, so that the member to remove can be computed. */
export function environmentMessageMember(owner: MailOwner, message: EnvironmentMessage): string {
  const { inboxId, messageId, receivedAt, offset } = message
  return `${startOf(owner, offset)} ${inboxId} ${messageId} ${receivedAt.getTime()}`
}

export async function listEnvironmentMessages(
  client: RedisClient,
  keys: ViewKeys,
  query: EnvironmentQuery,
): Promise<EnvironmentMessage[]> {
  const members = await membersOf(client, keys.environmentMessages(query.partition), query)
  return members.map((member) => {
    const [, , offset = '', inboxId = '', messageId = '', receivedAtMs = ''] = member.split(' ')
    return {
      inboxId: brand('inb', inboxId),
      messageId: brand('msg', messageId),
      receivedAt: new Date(Number(receivedAtMs)),
      offset: Number.parseInt(offset, 16),
    }
  })
}

/** The event at an offset of an inbox's history, as a member of the set. */
export function environmentEndingMember(inbox: Inbox, offset: number): string {
  return `${startOf(inbox, offset)} ${inbox.id}`
}

export async function listEnvironmentEndings(
  client: RedisClient,
  keys: ViewKeys,
  query: EnvironmentQuery,
): Promise<EnvironmentEnding[]> {
  const members = await membersOf(client, keys.environmentEndings(query.partition), query)
  const endings = members.map(async (member) => {
    const [, , offset = '', inbox = ''] = member.split(' ')
    const [inboxId, score] = [brand('inb', inbox), Number.parseInt(offset, 16)]
    const [entry] = await client.zrangeBuffer(keys.history(inboxId), score, String(score), 'BYSCORE')
    return entry === undefined ? [] : [{ inboxId, entry: decodeHistoryEntry(entry) }]
  })
  return (await reach(() => Promise.all(endings))).flat()
}

function membersOf(
  client: RedisClient,
  key: string,
  { order, from, to, limit, ...owner }: EnvironmentQuery,
): Promise<string[]> {
  const [start, end] = [`[${startOf(owner, from)}`, `(${startOf(owner, to)}`]
  return reach(() =>
    order === 'asc'
      ? client.zrange(key, start, end, 'BYLEX', 'LIMIT', 0, limit)
      : client.zrange(key, end, start, 'BYLEX', 'REV', 'LIMIT', 0, limit),
  )
}

/** Removes all messages of an inbox. The order of its messages must still exist. */
export async function removeEnvironmentMessagesOf(
  client: RedisClient,
  keys: ViewKeys,
  inbox: Inbox,
): Promise<void> {
  if (inbox.isProtected) return
  const key = keys.environmentMessages(keys.partitionOf(inbox.id))
  for (let from = 0; ; from += REMOVED_AT_ONCE) {
    const page = await reach(() =>
      client.zrange(keys.order(inbox.id), from, String(from + REMOVED_AT_ONCE - 1), 'WITHSCORES'),
    )
    // The answer has each id followed by its offset.
    const offsets = page.filter((_, index) => index % 2 === 1).map(Number)
    if (offsets.length === 0) return
    const pipeline = client.pipeline()
    for (const offset of offsets) {
      pipeline.zrange(key, `[${startOf(inbox, offset)}`, `(${startOf(inbox, offset + 1)}`, 'BYLEX')
    }
    const members = (await reach(() => answersOf(pipeline))).flat().map(String)
    if (members.length > 0) await reach(() => client.zrem(key, ...members))
  }
}

/** What the members of an environment begin with, from an offset on. Names of environments have no spaces. */
function startOf({ accountId, environment }: MailOwner, offset: number): string {
  return `${accountId} ${environment} ${offset.toString(16).padStart(OFFSET_DIGITS, '0')}`
}
