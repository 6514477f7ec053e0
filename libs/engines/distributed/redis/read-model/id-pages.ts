import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { reach } from './reach.js'

/** Ids of a sorted set that stand behind a scope, in it from one end to the other. */
export async function pageOfIds(
  client: RedisClient,
  list: string,
  scope: string,
  prefix: string,
  { order, after, limit }: ListQuery<string>,
): Promise<string[]> {
  const [first, last] = [`${prefix}_`, `${prefix}_~`]
  const [from, to] = order === 'asc' ? [after ?? first, last] : [after ?? last, first]
  const [start, stop] = [`(${scope}${from}`, `(${scope}${to}`]
  const members = await reach(() =>
    order === 'asc'
      ? client.zrange(list, start, stop, 'BYLEX', 'LIMIT', 0, limit)
      : client.zrange(list, start, stop, 'BYLEX', 'REV', 'LIMIT', 0, limit),
  )
  return members.map((member) => member.slice(scope.length))
}

/** The rows of those ids that a hash has. */
export async function rowsOfIds(
  client: RedisClient,
  hash: string,
  ids: readonly string[],
): Promise<Buffer[]> {
  if (ids.length === 0) return []
  const rows = await reach(() => client.hmgetBuffer(hash, ...ids))
  return rows.filter((row) => row !== null)
}
