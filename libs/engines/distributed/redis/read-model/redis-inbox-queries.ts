import { brand } from '#libs/domain/ids/typeid.js'
import { reach, BULK_TIMEOUT_MS } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import { listEnvironmentEndings, listEnvironmentMessages } from './environment-lists.js'
import { inboxLists } from './inbox-lists.js'
import type { ViewKeys } from './keys.js'
import { labelTotals, listLabelCounts } from './label-counts.js'
import { pageByOffset, reachEveryPartition } from './lists.js'
import { decodeHistoryEntry, type Tables } from './rows.js'

export function inboxQueries(
  client: RedisClient,
  bulk: RedisClient,
  keys: ViewKeys,
  tables: Tables,
): MailQueries {
  return {
    async progress({ topic, partition }) {
      const progressKey = keys.progress({ topic, partition })
      const names = ['log', 'position', 'target', 'begun']
      const [logId, position, target, begun] = await reach(() => client.hmget(progressKey, ...names))
      if (logId == null || position == null || target == null) return null
      const begunAtMs = Number(begun)
      return { topic, partition, logId, position: Number(position), target: Number(target), begunAtMs }
    },

    inbox: (id) => tables.inboxes.get(id),

    /**
     * An entry is written before its inbox, and stays when the views are emptied, so it is valid only if the inbox has the
     * address. Without a valid entry the partitions are searched, because a node of a Cluster may lose its last writes
     * when the others do not. The entry is then written again.
     */
    async inboxAt(address) {
      const entry = keys.address(address)
      const id = await reach(() => client.get(entry))
      if (id !== null) {
        const row = await tables.inboxes.get(brand('inb', id))
        if (row?.inbox.address === address) return row
      }
      const known = await reachEveryPartition(keys, (partition) =>
        client.hget(keys.addresses(partition), address),
      )
      const found = known.find((id) => id !== null) ?? null
      if (found === null) return null
      await reach(() => client.set(entry, found))
      return tables.inboxes.get(brand('inb', found))
    },

    listInboxes: inboxLists(client, keys, tables),

    message: (key) => tables.messages.get(key),

    listMessages: ({ inboxId, ...range }) =>
      pageByOffset(client, keys.order(inboxId), range, async (ids) => {
        const rows = await tables.messages.getAll(ids.map((id) => ({ inboxId, messageId: brand('msg', id) })))
        return rows.flatMap((row) => (row?.message.state === 'present' ? [row] : []))
      }),

    listEnvironmentMessages: (query) => listEnvironmentMessages(client, keys, query),

    listEnvironmentEndings: (query) => listEnvironmentEndings(client, keys, query),

    labelTotals: (query) => labelTotals(client, keys, query),

    listLabelCounts: (query) => listLabelCounts(client, keys, query),

    body: (key) => content(key, keys.body(key)),

    raw: (key) => content(key, keys.raw(key)),

    async history({ inboxId, order, from, to, limit }) {
      const key = keys.history(inboxId)
      const found = await reach(() =>
        order === 'asc'
          ? client.zrangeBuffer(key, from, `(${to}`, 'BYSCORE', 'LIMIT', 0, limit)
          : client.zrangeBuffer(key, `(${to}`, String(from), 'BYSCORE', 'REV', 'LIMIT', 0, limit),
      )
      return found.map(decodeHistoryEntry)
    },
  }

  /** Content of a message that exists. Content is written before the row of its message. */
  async function content(key: MessageKey, contentKey: string): Promise<Buffer | null> {
    const [row, bytes] = await Promise.all([
      tables.messages.get(key),
      reach(() => bulk.getBuffer(contentKey), BULK_TIMEOUT_MS),
    ])
    return row?.message.state === 'present' ? bytes : null
  }
}
