import { UnavailableError } from '#libs/runtime/errors.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { PartitionRange } from '#libs/ports/event-log/event-log.js'
import type { EncodedRows } from './usage-rows.js'

/** Usage figures are unavailable for now. Every method rejects with it within seconds; a write may have been carried out. */
export class UsageUnavailableError extends UnavailableError {}

/** Why an engine has no store of usage figures. */
export const WHY_NOT_COUNTED =
  "MAYFLY_COUNT_USAGE is false, chDB does not support this system, or it can't read its files (see the log)"

/** Offsets of a partition, from `first` up to, not including, `end`. */
export type UsageRange = Omit<PartitionRange, 'topic'>

/** The rows of all events in some ranges of a topic. The same ranges always have the same rows. */
export interface UsageBatch {
  /** The id of the log that the ranges are of. */
  logId: string
  topic: string
  ranges: readonly UsageRange[]
  rows: readonly EncodedRows[]
}

/** Writes usage figures. Errors: `UsageUnavailableError`. */
export interface UsageSink {
  /** By partition, the offset after the last written record. Partitions without written records have no entry. */
  writtenTo(logId: string, topic: string): Promise<Map<number, number>>
  /** Resolves once every table counts the rows. Writing the same batch again soon after changes nothing. */
  write(batch: UsageBatch): Promise<void>
}

/** The key that figures are for; null for the whole account. */
export interface UsageOwner {
  accountId: AccountId
  keyId: KeyId | null
}

/** From the shortest to the longest. */
export const USAGE_INTERVALS = ['second', 'minute', 'hour', 'day'] as const
export type UsageInterval = (typeof USAGE_INTERVALS)[number]
export const INTERVAL_MS: Readonly<Record<UsageInterval, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
}

export type UsageGrouping = { by: 'none' | 'key' | 'environment' } | { by: 'label'; name: string }

export interface UsageQuery {
  owner: UsageOwner
  /** Inclusive; `to` is exclusive. */
  from: Date
  to: Date
  interval: UsageInterval
  grouping: UsageGrouping
  /** An event must have all of them. */
  labels: readonly (readonly [name: string, value: string])[]
  /** The most rows to return. */
  limit: number
}

export interface UsageTotals {
  /** Requests answered. */
  requests: number
  /** Requests answered 429, and mails refused. */
  refusals: number
  /** Inboxes created. */
  inboxes: number
  /** Mails received, counted for each recipient. */
  mails: number
  /** Bytes of those mails. */
  bytes: number
}

/** Latencies in milliseconds. */
export interface Quantiles {
  p50: number
  p95: number
  p99: number
}

export interface QuantilesAndMax extends Quantiles {
  max: number
}

/** The figures of one interval and group in which anything happened. */
export interface UsageFigures extends UsageTotals {
  /** The start of the interval, also if the query begins later. */
  at: Date
  /** Null without a grouping, and for events that lack the label. */
  group: string | null
  /** Null if no request was timed. */
  requestMs: Quantiles | null
  /** From the acceptance of a mail until the views show it. */
  visibleMs: Quantiles | null
}

export type UsageReportQuery = Pick<UsageQuery, 'owner' | 'from' | 'to' | 'labels'>

export interface UsageReport extends UsageTotals {
  /** Mails beyond the first of those with the same Message-ID in the same inbox. */
  duplicates: number
  /** Messages that the API has returned at least once. */
  read: number
  visibleMs: QuantilesAndMax | null
  /** From the acceptance of a mail to the first response that contained it. */
  firstReadMs: QuantilesAndMax | null
  /** From the last byte of a mail until it is durable. */
  acceptMs: QuantilesAndMax | null
  /** Inboxes created that received no mail. */
  inboxesWithoutMail: number
  /** When the first and the last mail were received. */
  firstMailAt: Date | null
  lastMailAt: Date | null
  /** Mails received over time, from the first to the last. */
  timeline: readonly TimelineBucket[]
}

/** A store of usage figures. */
export interface UsageStore {
  sink: UsageSink
  queries: UsageQueries
  /** Migrates the tables to this version. Must have resolved once before anything else works. Idempotent. */
  prepare(): Promise<void>
  close(): Promise<void>
}

export const EXPORT_FORMATS = ['parquet', 'ndjson', 'csv'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** `usage` is an alias of `usage_minute`. */
export const EXPORT_TABLES = [
  'usage',
  'usage_minute',
  'usage_hour',
  'usage_day',
  'routes_minute',
  'webhooks_minute',
  'requests',
  'inbox_events',
  'mail_events',
  'webhook_events',
] as const
export type ExportTable = (typeof EXPORT_TABLES)[number]

export interface UsageExportQuery {
  accountId: AccountId
  from: Date
  to: Date
  table: ExportTable
  format: ExportFormat
  /** The names of keys, which the file has beside their ids. A key without one has an empty name there. */
  keyNames: ReadonlyMap<KeyId, string>
}

/** Reads usage figures, which lag a few seconds behind the log. Errors: `UsageUnavailableError`. */
export interface UsageQueries {
  /** Ordered by time, then by group. Null if there are more rows than the limit. */
  figures(query: UsageQuery): Promise<UsageFigures[] | null>
  report(query: UsageReportQuery): Promise<UsageReport>
  /** Totals of keys of one account since they were issued. Has no entry for a key that was not used. */
  totals(accountId: AccountId, keyIds: readonly KeyId[]): Promise<Map<KeyId, UsageTotals>>
  /**
   * The bytes of a file. The signal cancels the export. Abort it also after the last byte has been read: that releases
   * the source.
   */
  export(query: UsageExportQuery, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}

/** The mails received in a part of a run. */
export interface TimelineBucket {
  from: Date
  to: Date
  mails: number
  bytes: number
}

/** Counts of the non-empty buckets, by start time in milliseconds. */
export type BucketCounts = ReadonlyMap<number, { mails: number; bytes: number }>

export const MAX_BUCKETS = 200

const WIDTHS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * INTERVAL_MS.second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * INTERVAL_MS.minute),
  ...[1, 2, 3, 6, 12, 24].map((count) => count * INTERVAL_MS.hour),
]

/** The shortest length with which at most MAX_BUCKETS buckets cover a span. Buckets begin at multiples of their length. */
export function bucketMs(first: Date, last: Date): number {
  const fits = (widthMs: number) => bucketsOf(first, last, widthMs) <= MAX_BUCKETS
  const days = Math.ceil((last.getTime() - first.getTime()) / INTERVAL_MS.day / (MAX_BUCKETS - 1))
  return WIDTHS_MS.find(fits) ?? days * INTERVAL_MS.day
}

/** All buckets from the first mail to the last, including those without mail. */
export function timelineOf(first: Date, last: Date, counts: BucketCounts): TimelineBucket[] {
  const widthMs = bucketMs(first, last)
  const start = Math.floor(first.getTime() / widthMs) * widthMs
  return Array.from({ length: bucketsOf(first, last, widthMs) }, (_, index) => {
    const from = start + index * widthMs
    const { mails = 0, bytes = 0 } = counts.get(from) ?? {}
    return { from: new Date(from), to: new Date(from + widthMs), mails, bytes }
  })
}

function bucketsOf(first: Date, last: Date, widthMs: number): number {
  return Math.floor(last.getTime() / widthMs) - Math.floor(first.getTime() / widthMs) + 1
}
