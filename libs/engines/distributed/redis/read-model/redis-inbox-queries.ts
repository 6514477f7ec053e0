import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { Address } from '#libs/domain/inbox/address.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import type {
  HistoryQuery,
  InboxListQuery,
  InboxQueries,
  MessageRangeQuery,
  Progress,
} from '#libs/ports/read-model/queries.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { InboxRow, MessageRow } from '#libs/ports/read-model/views.js'
import { InboxLists } from './inbox-lists.js'
import type { ViewKeys } from './keys.js'
import { pageByOffset, reach, reachBulk } from './lists.js'
import { RowReader, decodeHistoryEntry, decodeMessage } from './rows.js'

export class RedisInboxQueries implements InboxQueries {
  private readonly rows: RowReader
  private readonly lists: InboxLists

  constructor(
    private readonly client: RedisClient,
    private readonly bulk: RedisClient,
    private readonly keys: ViewKeys,
  ) {
    this.rows = new RowReader(client, keys)
    this.lists = new InboxLists(client, keys, this.rows)
  }

  async progress({ topic, partition }: Partition): Promise<Progress | null> {
    const slot = this.keys.slot({ topic, partition })
    const names = ['log', 'position', 'target', 'begun']
    const [logId, position, target, begun] = await reach(() => this.client.hmget(slot, ...names))
    if (logId == null || position == null || target == null) return null
    const begunAtMs = Number(begun)
    return { topic, partition, logId, position: Number(position), target: Number(target), begunAtMs }
  }

  async inbox(id: InboxId): Promise<InboxRow | null> {
    const [row = null] = await this.rows.inboxes([id])
    return row
  }

  /**
   * An entry is written before its inbox, and stays where the views are emptied: the inbox has the last word. Where
   * there is no entry to trust, the partitions are asked, since a node of a Cluster may lose its last writes apart
   * from the others; what they know is entered again.
   */
  async inboxIdAt(address: Address): Promise<InboxId | null> {
    const { client, keys } = this
    const entry = keys.address(address)
    const id = await reach(() => client.get(entry))
    if (id !== null) {
      const row = await this.inbox(id as InboxId)
      if (row?.inbox.address === address) return row.inbox.id
    }
    const known = await reach(() =>
      Promise.all(keys.everyPartition().map((each) => client.hget(keys.addresses(each), address))),
    )
    const found = known.find((each) => each !== null) ?? null
    if (found !== null) await reach(() => client.set(entry, found))
    return found as InboxId | null
  }

  listInboxes(query: InboxListQuery): Promise<Inbox[]> {
    return this.lists.list(query)
  }

  async message(key: MessageKey): Promise<MessageRow | null> {
    const [row = null] = await this.rows.messages([key])
    return row
  }

  listMessages({ inboxId, ...range }: MessageRangeQuery): Promise<MessageRow[]> {
    const list = this.keys.order(inboxId)
    return pageByOffset(this.client, list, range, async (ids) => {
      const rows = await this.rows.messages(ids.map((id) => ({ inboxId, messageId: id as MessageId })))
      return rows.flatMap((row) => (row?.message.state === 'present' ? [row] : []))
    })
  }

  body(key: MessageKey): Promise<Uint8Array | null> {
    return this.content(key, this.keys.body(key))
  }

  raw(key: MessageKey): Promise<Uint8Array | null> {
    return this.content(key, this.keys.raw(key))
  }

  async history({ inboxId, order, from, to, limit }: HistoryQuery): Promise<HistoryEntry[]> {
    const key = this.keys.history(inboxId)
    const found = await reach(() =>
      order === 'asc'
        ? this.client.zrangeBuffer(key, from, `(${to}`, 'BYSCORE', 'LIMIT', 0, limit)
        : this.client.zrangeBuffer(key, `(${to}`, String(from), 'BYSCORE', 'REV', 'LIMIT', 0, limit),
    )
    return found.map(decodeHistoryEntry)
  }

  /** Only of a message that is there: content comes before its message's row. */
  private async content({ inboxId, messageId }: MessageKey, contentKey: string): Promise<Buffer | null> {
    const { client, bulk, keys } = this
    const [row, content] = await Promise.all([
      reach(() => client.hgetBuffer(keys.messages(inboxId), messageId)),
      reachBulk(() => bulk.getBuffer(contentKey)),
    ])
    return row === null || decodeMessage(row).message.state === 'deleted' ? null : content
  }
}
