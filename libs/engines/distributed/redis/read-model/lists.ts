import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { ListQuery, OffsetQuery } from '#libs/ports/read-model/queries.js'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type { ViewKeys } from './keys.js'

const WEBHOOKS_PER_SCAN = 500

/** A page of the ids in a sorted set. `scope` is the prefix of the members. */
export async function pageOfIds<Id extends string>(
  client: RedisClient,
  list: string,
  scope: string,
  prefix: string,
  { order, after, limit }: ListQuery<Id>,
): Promise<Id[]> {
  const [first, last] = [`${prefix}_`, `${prefix}_~`]
  const [from, to] = order === 'asc' ? [after ?? first, last] : [after ?? last, first]
  const [start, stop] = [`(${scope}${from}`, `(${scope}${to}`]
  const members = await reach(() =>
    order === 'asc'
      ? client.zrange(list, start, stop, 'BYLEX', 'LIMIT', 0, limit)
      : client.zrange(list, start, stop, 'BYLEX', 'REV', 'LIMIT', 0, limit),
  )
  return members.map((member) => member.slice(scope.length) as Id)
}

/**
 * A page of rows whose ids are in a sorted set, scored by offset. `rowsOf` reads rows by id, and omits rows that were
 * removed since their ids were read. The page then has further rows instead.
 */
export async function pageByOffset<Row>(
  client: RedisClient,
  list: string,
  { order, from, to, limit }: OffsetQuery,
  rowsOf: (ids: string[]) => Promise<Row[]>,
): Promise<Row[]> {
  const found: Row[] = []
  for (let [first, end] = [from, to]; ;) {
    const wanted = limit - found.length
    const page = await reach(() =>
      order === 'asc'
        ? client.zrange(list, first, `(${end}`, 'BYSCORE', 'LIMIT', 0, wanted, 'WITHSCORES')
        : client.zrange(list, `(${end}`, String(first), 'BYSCORE', 'REV', 'LIMIT', 0, wanted, 'WITHSCORES'),
    )
    // The answer has each id followed by its score.
    const ids = page.filter((_, index) => index % 2 === 0)
    found.push(...(await rowsOf(ids)))
    if (ids.length < wanted || found.length === limit) return found
    const last = Number(page.at(-1))
    if (order === 'asc') first = last + 1
    else end = last
  }
}

/** The ids of the rows in a hash, about `count` at a time. An id may be yielded twice. */
export async function* idsIn<Id extends string>(
  client: RedisClient,
  hash: string,
  count: number,
): AsyncGenerator<Id[]> {
  let cursor = '0'
  do {
    const [next, fields] = await reach(() => client.hscan(hash, cursor, 'COUNT', count))
    // The answer has each id followed by its row.
    const ids = fields.filter((_, index) => index % 2 === 0) as Id[]
    if (ids.length > 0) yield ids
    cursor = next
  } while (cursor !== '0')
}

/** Every webhook with deliveries or replays. An id may be yielded twice. */
export async function* webhooksIn(client: RedisClient, keys: ViewKeys): AsyncGenerator<WebhookId> {
  for (const partition of keys.everyPartition) {
    const known = keys.webhookHealth(partition)
    for await (const ids of idsIn<WebhookId>(client, known, WEBHOOKS_PER_SCAN)) yield* ids
  }
}

/** Sends a command for every partition, in one round trip. */
export function reachEveryPartition<Answer>(
  keys: ViewKeys,
  send: (partition: number) => Promise<Answer>,
): Promise<Answer[]> {
  return reach(() => Promise.all(keys.everyPartition.map(send)))
}
