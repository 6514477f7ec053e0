import { Encoder } from 'cbor-x'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { AccountId, InboxId, KeyId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { REMOVED, Webhook } from '#libs/domain/webhook/webhook.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type {
  DeliveryRow,
  InboxRow,
  MessageRow,
  WebhookHealth,
  HistoryEntry,
} from '#libs/ports/read-model/views.js'
import type { DeliveryKey, MessageKey, ReplayKey } from '#libs/ports/read-model/projection-store.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { ViewKeys } from './keys.js'

export type Tables = ReturnType<typeof tablesIn>

/** All tables of rows. A removed webhook has a mark instead of a row. */
export function tablesIn(client: RedisClient, keys: ViewKeys) {
  const { partitionOf } = keys
  const byId = <Id extends string, Row>(hashOf: (id: Id) => string) =>
    new Table<Id, Row>(client, hashOf, (id) => id)
  return {
    inboxes: byId<InboxId, InboxRow>((id) => keys.inboxes(partitionOf(id))),
    accounts: byId<AccountId, Account>(() => keys.accounts),
    apiKeys: byId<KeyId, ApiKey>(() => keys.apiKeys),
    webhooks: byId<WebhookId, Webhook | typeof REMOVED>(() => keys.webhooks),
    webhookHealth: byId<WebhookId, WebhookHealth>((id) => keys.webhookHealth(partitionOf(id))),
    messages: new Table<MessageKey, MessageRow>(
      client,
      ({ inboxId }) => keys.messages(inboxId),
      ({ messageId }) => messageId,
    ),
    deliveries: new Table<DeliveryKey, DeliveryRow>(
      client,
      ({ webhookId }) => keys.deliveries(webhookId),
      ({ deliveryId }) => deliveryId,
    ),
    replays: new Table<ReplayKey, Replay>(
      client,
      ({ webhookId }) => keys.replays(webhookId),
      ({ replayId }) => replayId,
    ),
  }
}

const MAX_ROWS_AT_ONCE = 500

/** Rows are stored as CBOR (RFC 8949), which has types for times and bytes. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false })

/** Rows of one kind. Each is a field of a hash. */
class Table<Key, Row> {
  constructor(
    private readonly client: RedisClient,
    private readonly hashOf: (key: Key) => string,
    private readonly fieldOf: (key: Key) => string,
  ) {}

  async get(key: Key): Promise<Row | null> {
    const bytes = await reach(() => this.client.hgetBuffer(this.hashOf(key), this.fieldOf(key)))
    return bytes === null ? null : this.decode(bytes)
  }

  /** Returns rows in the order of the keys. Rows of one hash are read with one command, many commands in one round trip. */
  async getAll(keys: readonly Key[]): Promise<(Row | null)[]> {
    const rows = new Map<Key, Row>()
    const commands = [...Map.groupBy(keys, this.hashOf)].flatMap(([hash, inHash]) =>
      [...chunksOf(inHash, MAX_ROWS_AT_ONCE)].map((chunk) => ({ hash, chunk })),
    )
    for (const some of chunksOf(commands, MAX_ROWS_AT_ONCE)) {
      await reach(() => Promise.all(some.map(({ hash, chunk }) => this.readChunk(hash, chunk, rows))))
    }
    return keys.map((key) => rows.get(key) ?? null)
  }

  /** The command that stores a row. */
  put(key: Key, row: Row): [command: 'HSET', hash: string, field: string, value: Buffer] {
    return ['HSET', this.hashOf(key), this.fieldOf(key), cbor.encode(row)]
  }

  /** Not validated: only the projection store writes rows, and views of another form are rebuilt. */
  decode(bytes: Buffer): Row {
    return cbor.decode(bytes) as Row
  }

  private async readChunk(hash: string, chunk: readonly Key[], rows: Map<Key, Row>): Promise<void> {
    const found = await this.client.hmgetBuffer(hash, ...chunk.map(this.fieldOf))
    for (const [index, key] of chunk.entries()) {
      const bytes = found[index] ?? null
      if (bytes !== null) rows.set(key, this.decode(bytes))
    }
  }
}

type HistoryFields = [
  offset: number,
  id: HistoryEntry['id'],
  type: HistoryEntry['type'],
  timeMs: number,
  messageId: HistoryEntry['messageId'],
  keyId: HistoryEntry['keyId'],
  size: number | null,
  digest: Buffer | null,
  actor: HistoryEntry['actor'],
  changed: HistoryEntry['changed'],
]

/** Without field names, because there is an entry for each event. The same entry always has the same bytes. */
export function encodeHistoryEntry(entry: HistoryEntry): Buffer {
  const { offset, id, type, time, messageId, keyId, size, digest, actor, changed } = entry
  const bytes = digest === null ? null : Buffer.from(digest, 'hex')
  const ofMail = [messageId, keyId, size, bytes] as const
  const fields: HistoryFields = [offset, id, type, time.getTime(), ...ofMail, actor, changed]
  return cbor.encode(fields)
}

export function decodeHistoryEntry(encoded: Buffer): HistoryEntry {
  const fields = cbor.decode(encoded) as HistoryFields
  const [offset, id, type, timeMs, messageId, keyId, size, bytes, actor, changed] = fields
  const [time, digest] = [new Date(timeMs), bytes?.toString('hex') ?? null]
  return { offset, id, type, time, messageId, keyId, size, digest, actor, changed }
}
