import { hash } from 'node:crypto'
import Type from 'typebox'
import {
  count,
  id,
  object,
  optional,
  plain,
  sha256,
  time,
  type ValueOf,
} from '#libs/domain/event-sourcing/declare.js'
import { bytesOf, idFromBytes, type AccountId, type LogId } from '#libs/domain/ids/typeid.js'

/** Each account has one audit log. */
export function logIdOf(accountId: AccountId): LogId {
  return idFromBytes('log', bytesOf(accountId))
}

/** The name of a log in its checkpoints: the URL that it is served under, without the scheme. */
export function originOf(publicUrl: string | null, logId: LogId): string {
  const base = (publicUrl ?? 'http://localhost').replace(/^[a-z]+:\/\//, '')
  return `${base}/v1/audit/logs/${logId}`
}

/** Longer than what Mayfly writes. With it, the length of a leaf fits into the two bytes that tiles have for it. */
export const MAX_TEXT_CHARS = 1_000
const short = plain(Type.String({ maxLength: MAX_TEXT_CHARS }))

/** What an audit log has of an event: where its record is, and nothing personal. */
export const leaf = object({
  id: id('evt'),
  /** As on the log, such as `mayfly.inbox.created`. */
  type: short,
  time,
  /** The id of who caused it; null for Mayfly itself. */
  actor: optional(short, null),
  /** As in the attributes of the record. */
  environment: short,
  /** The id of what it is about. */
  subject: short,
  topic: short,
  partition: count,
  offset: count,
  /** Of the record (`digestOf`). */
  recordSha256: sha256,
})

export type Leaf = ValueOf<typeof leaf>

/** A leaf as it is hashed: canonical JSON (RFC 8785), with its names in order. */
export function writeLeaf(leaf: Leaf): string {
  return JSON.stringify({
    actor: leaf.actor,
    environment: leaf.environment,
    id: leaf.id,
    offset: leaf.offset,
    partition: leaf.partition,
    record_sha256: leaf.recordSha256,
    subject: leaf.subject,
    time: leaf.time.toISOString(),
    topic: leaf.topic,
    type: leaf.type,
  })
}

/** Reads what `writeLeaf` has written. */
export function readLeaf(text: string): Leaf {
  const { record_sha256: recordSha256, time, ...rest } = JSON.parse(text) as WrittenLeaf
  return { ...rest, recordSha256, time: new Date(time) }
}

type WrittenLeaf = Omit<Leaf, 'recordSha256' | 'time'> & { record_sha256: string; time: string }

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** As `readLeaf`, for bytes that anybody may have written: null if `writeLeaf` does not write them. */
export function parseLeaf(bytes: Uint8Array): Leaf | null {
  try {
    const text = utf8.decode(bytes)
    const leaf = readLeaf(text)
    const { actor, environment, id, subject, topic, type, recordSha256, partition, offset } = leaf
    const texts = [actor ?? '', environment, id, subject, topic, type]
    const isLeaf =
      texts.every((each) => typeof each === 'string') &&
      [partition, offset].every((each) => Number.isSafeInteger(each) && each >= 0) &&
      /^[0-9a-f]{64}$/.test(recordSha256)
    return isLeaf && writeLeaf(leaf) === text ? leaf : null
  } catch {
    return null
  }
}

interface StoredRecord {
  key: string
  headers: Readonly<Record<string, string>>
  value: Uint8Array
}

/** A record as canonical JSON (RFC 8785), with the value in base64. */
export function writeRecord({ key, headers, value }: StoredRecord): string {
  const names = Object.keys(headers).sort()
  const sorted = Object.fromEntries(names.map((name) => [name, headers[name]]))
  const rest = JSON.stringify({ headers: sorted, key }).slice(0, -1)
  const base64 = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  // Not by JSON.stringify, which would search all of it for characters to escape.
  return `${rest},"value":"${base64}"}`
}

/** Reads what `writeRecord` has written. */
export function readRecord(text: string): StoredRecord {
  const { value, ...rest } = JSON.parse(text) as Omit<StoredRecord, 'value'> & { value: string }
  return { ...rest, value: Buffer.from(value, 'base64') }
}

/** Hex SHA-256 of `writeRecord`. */
export function digestOf(record: StoredRecord): string {
  return hash('sha256', writeRecord(record))
}
