import { UnavailableError } from '#libs/runtime/errors.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { EncodedRows } from './usage-rows.js'

/** Usage figures are out of reach for now: every method rejects with it, soon. What was asked for may have been done. */
export class UsageUnavailableError extends UnavailableError {
  override readonly name = 'UsageUnavailableError'
}

/** Why an engine has no store of usage figures. */
export const WHY_NOT_COUNTED = 'MAYFLY_COUNT_USAGE is false, or chDB does not come for this system'

/** Offsets of a partition, from `first` up to, not including, `end`. */
export interface UsageRange {
  partition: number
  first: number
  end: number
}

/** The rows of all events in some ranges of a topic: always the same ones for the same ranges. */
export interface UsageBatch {
  /** Of the log that they stand on. */
  logId: string
  topic: string
  ranges: readonly UsageRange[]
  rows: readonly EncodedRows[]
}

/** Where the sink writes. Errors: `UsageUnavailableError`. */
export interface UsageSink {
  /** Behind the last offset that is written, by partition, of the partitions of which anything is. */
  writtenTo(logId: string, topic: string): Promise<Map<number, number>>
  /** Resolves once the rows are counted everywhere. The same batch again, soon after, changes nothing. */
  write(batch: UsageBatch): Promise<void>
}

/** Whose figures: those of one key, or of the whole account. */
export interface UsageOwner {
  accountId: AccountId
  keyId: KeyId | null
}

/** In order of their length. */
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
  /** From there up to, not including, `to`. */
  from: Date
  to: Date
  interval: UsageInterval
  grouping: UsageGrouping
  /** Every one of them must hold. */
  labels: readonly (readonly [name: string, value: string])[]
  /** The largest number of rows to answer with. */
  limit: number
}

export interface UsageTotals {
  /** Answered. */
  requests: number
  /** Requests answered 429, and mails refused. */
  refusals: number
  /** Made. */
  inboxes: number
  /** That came to them, each recipient's copy. */
  mails: number
  /** Of those mails. */
  bytes: number
}

/** In milliseconds. */
export interface Quantiles {
  p50: number
  p95: number
  p99: number
}

/** What happened in one interval, in one group; there is none if nothing did. */
export interface UsageFigures extends UsageTotals {
  /** When the interval begins, however much of it the query takes in. */
  at: Date
  /** Null if nothing is grouped, and for what lacks the label. */
  group: string | null
  /** Null if there was nothing to be timed. */
  requestMs: Quantiles | null
  /** From a mail's being accepted to its being in the views. */
  visibleMs: Quantiles | null
}

export interface UsageReportQuery {
  owner: UsageOwner
  from: Date
  to: Date
  labels: UsageQuery['labels']
}

export interface UsageReport extends UsageTotals {
  /** Mails beyond the first of those with the same Message-ID in the same inbox. */
  duplicates: number
  /** Messages that the API has answered with at least once. */
  read: number
  visibleMs: Quantiles | null
  /** From a mail's being accepted to the first answer that had it in it. */
  firstReadMs: Quantiles | null
  /** From a mail's last byte to its being durable. */
  acceptMs: (Quantiles & { max: number }) | null
  /** Inboxes created that no mail came to. */
  inboxesWithoutMail: number
  /** When the first mail came, and the last one. */
  firstMailAt: Date | null
  lastMailAt: Date | null
  /** When mails came, from the first to the last. */
  timeline: readonly TimelineBucket[]
}

/** A store of usage figures. */
export interface UsageStore {
  sink: UsageSink
  queries: UsageQueries
  /** Resolves once its tables are as this version wants them; without that nothing of it answers. Harmless to repeat. */
  prepare(): Promise<void>
  close(): Promise<void>
}

export const EXPORT_FORMATS = ['parquet', 'ndjson', 'csv'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** `usage` is another name of `usage_minute`. */
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
}

/** What is asked for usage figures, a few seconds behind the log. Errors: `UsageUnavailableError`. */
export interface UsageQueries {
  /** By time, then by group. Null if there are more rows than the limit. */
  figures(query: UsageQuery): Promise<UsageFigures[] | null>
  report(query: UsageReportQuery): Promise<UsageReport>
  /** Of keys of one account, since they were issued; nothing of a key that was not used. */
  totals(accountId: AccountId, keyIds: readonly KeyId[]): Promise<Map<KeyId, UsageTotals>>
  /** A file's bytes. The signal ends it, and is to abort once they have been read too: what they came from goes then. */
  export(query: UsageExportQuery, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}

/** A part of a run. */
export interface TimelineBucket {
  from: Date
  to: Date
  mails: number
  bytes: number
}

/** Counts of the non-empty buckets, by start time in milliseconds. */
export type BucketCounts = ReadonlyMap<number, { mails: number; bytes: number }>

export const MAX_BUCKETS = 200

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WIDTHS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((count) => count * HOUR),
]

/** The shortest common length of buckets, which begin at its multiples, of which at most MAX_BUCKETS cover a span. */
export function bucketMs(first: Date, last: Date): number {
  const fits = (widthMs: number) => bucketsOf(first, last, widthMs) <= MAX_BUCKETS
  const days = Math.ceil((last.getTime() - first.getTime()) / DAY / (MAX_BUCKETS - 1))
  return WIDTHS_MS.find(fits) ?? days * DAY
}

/** All buckets from the first mail to the last, those without mail included. */
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
