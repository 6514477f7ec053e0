import { Encoder } from 'cbor-x'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { DeliveryKey, MessageKey, ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { DeliveryRow, InboxRow, MessageRow, WebhookHealth } from '#libs/ports/read-model/views.js'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { REMOVED, Webhook } from '#libs/domain/webhook/webhook.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { ViewKeys } from './keys.js'
import { reach, runsOf } from './lists.js'

const ROWS_AT_ONCE = 500

/** Reads rows by id, many in few round trips: those of one hash with one command. */
export class RowReader {
  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
  ) {}

  /** In the order of the ids. */
  async inboxes(ids: readonly InboxId[]): Promise<(InboxRow | null)[]> {
    const byKey = Map.groupBy(ids, (id) => this.keys.inboxes(this.keys.partitionOf(id)))
    const rows = await this.read(byKey, decodeInbox)
    return ids.map((id) => rows.get(id) ?? null)
  }

  /** In the order of the keys. */
  async messages(keys: readonly MessageKey[]): Promise<(MessageRow | null)[]> {
    const byHash = idsByHash(keys, ({ inboxId }) => this.keys.messages(inboxId), 'messageId')
    const rows = await this.read(byHash, decodeMessage)
    return keys.map(({ messageId }) => rows.get(messageId) ?? null)
  }

  /** In the order of the keys. */
  async deliveries(keys: readonly DeliveryKey[]): Promise<(DeliveryRow | null)[]> {
    const byHash = idsByHash(keys, ({ webhookId }) => this.keys.deliveries(webhookId), 'deliveryId')
    const rows = await this.read(byHash, decodeDelivery)
    return keys.map(({ deliveryId }) => rows.get(deliveryId) ?? null)
  }

  /** In the order of the keys. */
  async replays(keys: readonly ReplayKey[]): Promise<(Replay | null)[]> {
    const byHash = idsByHash(keys, ({ webhookId }) => this.keys.replays(webhookId), 'replayId')
    const rows = await this.read(byHash, decodeReplay)
    return keys.map(({ replayId }) => rows.get(replayId) ?? null)
  }

  /** In the order of the ids. */
  async webhookHealth(ids: readonly WebhookId[]): Promise<(WebhookHealth | null)[]> {
    const byKey = Map.groupBy(ids, (id) => this.keys.webhookHealth(this.keys.partitionOf(id)))
    const rows = await this.read(byKey, decodeHealth)
    return ids.map((id) => rows.get(id) ?? null)
  }

  private async read<Id extends string, Row>(
    byHash: ReadonlyMap<string, readonly Id[]>,
    decode: (bytes: Buffer) => Row,
  ): Promise<Map<Id, Row>> {
    const asked = [...byHash].flatMap(([hash, ids]) =>
      [...runsOf(ids, ROWS_AT_ONCE)].map((run) => ({ hash, run })),
    )
    const rows = new Map<Id, Row>()
    for (const turn of runsOf(asked, ROWS_AT_ONCE)) {
      await reach(() => Promise.all(turn.map(({ hash, run }) => this.readHash(hash, run, decode, rows))))
    }
    return rows
  }

  private async readHash<Id extends string, Row>(
    hash: string,
    ids: readonly Id[],
    decode: (bytes: Buffer) => Row,
    rows: Map<Id, Row>,
  ): Promise<void> {
    const found = await this.client.hmgetBuffer(hash, ...ids)
    for (const [index, id] of ids.entries()) {
      const bytes = found[index] ?? null
      if (bytes !== null) rows.set(id, decode(bytes))
    }
  }
}

/** The ids to be read from each hash. */
function idsByHash<Key extends object, Name extends keyof Key>(
  keys: readonly Key[],
  hashOf: (key: Key) => string,
  name: Name,
): Map<string, Key[Name][]> {
  const byHash = new Map<string, Key[Name][]>()
  for (const [hash, some] of Map.groupBy(keys, hashOf)) {
    byHash.set(
      hash,
      some.map((key) => key[name]),
    )
  }
  return byHash
}

/** Rows as CBOR (RFC 8949), which keeps times and bytes as such. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false })

type WebhookRow = Webhook | typeof REMOVED
type Row = InboxRow | MessageRow | Account | ApiKey | WebhookRow | DeliveryRow | Replay | WebhookHealth

export function encodeRow(row: Row): Buffer {
  return cbor.encode(row)
}

// Only the projection store writes them, in the form that the slot names.
export const decodeInbox = (bytes: Buffer): InboxRow => cbor.decode(bytes) as InboxRow
export const decodeMessage = (bytes: Buffer): MessageRow => cbor.decode(bytes) as MessageRow
export const decodeAccount = (bytes: Buffer): Account => cbor.decode(bytes) as Account
export const decodeApiKey = (bytes: Buffer): ApiKey => cbor.decode(bytes) as ApiKey
export const decodeWebhook = (bytes: Buffer): WebhookRow => cbor.decode(bytes) as WebhookRow

export const decodeDelivery = (bytes: Buffer): DeliveryRow => cbor.decode(bytes) as DeliveryRow
export const decodeReplay = (bytes: Buffer): Replay => cbor.decode(bytes) as Replay
export const decodeHealth = (bytes: Buffer): WebhookHealth => cbor.decode(bytes) as WebhookHealth

type HistoryFields = [
  offset: number,
  id: HistoryEntry['id'],
  type: HistoryEntry['type'],
  timeMs: number,
  messageId: HistoryEntry['messageId'],
  keyId: HistoryEntry['keyId'],
  size: number | null,
  digest: Buffer | null,
]

/** Without names, since there are as many as events; the same bytes for the same entry, so that it is there once. */
export function encodeHistoryEntry(entry: HistoryEntry): Buffer {
  const { offset, id, type, time, messageId, keyId, size, digest } = entry
  const bytes = digest === null ? null : Buffer.from(digest, 'hex')
  return cbor.encode([
    offset,
    id,
    type,
    time.getTime(),
    messageId,
    keyId,
    size,
    bytes,
  ] satisfies HistoryFields)
}

export function decodeHistoryEntry(encoded: Buffer): HistoryEntry {
  const [offset, id, type, timeMs, messageId, keyId, size, digest] = cbor.decode(encoded) as HistoryFields
  const time = new Date(timeMs)
  return { offset, id, type, time, messageId, keyId, size, digest: digest?.toString('hex') ?? null }
}
