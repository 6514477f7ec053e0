import { hash } from 'node:crypto'
import { bytesOf, idFromBytes, type AccountId, type EventId, type LogId } from '#libs/domain/ids/typeid.js'

/** Each account has one audit log. */
export function logIdOf(accountId: AccountId): LogId {
  return idFromBytes('log', bytesOf(accountId))
}

/** The name of a log in its checkpoints: the URL that it is served under, without the scheme. */
export function originOf(publicUrl: string | null, logId: LogId): string {
  const base = (publicUrl ?? 'http://localhost').replace(/^[a-z]+:\/\//, '').replace(/\/$/, '')
  return `${base}/v1/audit/logs/${logId}`
}

/** What an audit log has of an event: where its record is, and nothing personal. */
export interface Leaf {
  /** The id of who caused it; null for Mayfly itself. */
  actor: string | null
  environment: string
  id: EventId
  offset: number
  partition: number
  /** Hex SHA-256 of the record (`digestOf`). */
  record_sha256: string
  /** The id of what it is about. */
  subject: string
  /** RFC 3339. */
  time: string
  topic: string
  /** As on the log, such as `mayfly.inbox.created`. */
  type: string
}

/** The names of all properties, in order: as JSON without spaces this is canonical (RFC 8785). */
const PROPERTIES = [
  ...['actor', 'environment', 'id', 'offset', 'partition', 'record_sha256', 'subject', 'time', 'topic'],
  'type',
]

export function writeLeaf(leaf: Leaf): string {
  return JSON.stringify(leaf, PROPERTIES)
}

export function readLeaf(text: string): Leaf {
  return JSON.parse(text) as Leaf
}

interface StoredRecord {
  key: string
  headers: Readonly<Record<string, string>>
  value: Uint8Array
}

/** A record as canonical JSON (RFC 8785), with the value in base64. */
export function writeRecord({ key, headers, value }: StoredRecord): string {
  const sorted = Object.fromEntries(Object.entries(headers).sort(([one], [other]) => (one < other ? -1 : 1)))
  return JSON.stringify({ headers: sorted, key, value: Buffer.from(value).toString('base64') })
}

/** Hex SHA-256 of `writeRecord`. */
export function digestOf(record: StoredRecord): string {
  return hash('sha256', writeRecord(record))
}
