import type { ClickHouseClient } from '@clickhouse/client'
import type { LimitFunction } from 'p-limit'
import { isId, type AccountId, type KeyId } from '#libs/domain/ids/typeid.js'
import {
  UsageUnavailableError,
  type Quantiles,
  type QuantilesAndMax,
  type UsageExportQuery,
  type UsageFigures,
  type UsageQueries,
  type UsageQuery,
  type UsageReport,
  type UsageReportQuery,
  type UsageTotals,
  bucketMs,
  timelineOf,
  type BucketCounts,
} from '#libs/ports/usage/usage-store.js'
import { errorCode, orUnavailable } from './clients.js'
import {
  figuresQuery,
  QUERY_LIMITS,
  type BoundQuery,
  reportQuery,
  sumsOf,
  timelineQuery,
} from './figures-query.js'
import { exportedFile, type StreamFile } from './export-query.js'

/** p50, p95 and p99; in a report, also the maximum. A quantile of no values is NaN, which is null in JSON. */
type Latency = readonly (number | null)[]

interface FiguresRow extends UsageTotals {
  /** Seconds since 1970. */
  at: number
  grp: string | null
  requestMs: Latency
  visibleMs: Latency
}

interface ReportRow extends UsageTotals {
  duplicates: number
  read: number
  visibleMs: Latency
  firstReadMs: Latency
  acceptMs: Latency
  inboxesWithoutMail: number
  /** Milliseconds since 1970. */
  firstMailAt: number
  lastMailAt: number
}

const TOO_MANY_ROWS = '158'

export class ClickHouseUsageQueries implements UsageQueries {
  constructor(
    private readonly client: ClickHouseClient,
    private readonly streamFile: StreamFile,
    private readonly limit: LimitFunction,
  ) {}

  async figures(query: UsageQuery): Promise<UsageFigures[] | null> {
    if (query.from >= query.to) return []
    const rows = await this.rows<FiguresRow>(figuresQuery(query)).catch(nullIfTooMany)
    if (rows === null || rows.length > query.limit) return null
    return rows.map(({ at, grp, requestMs, visibleMs, ...totals }) => ({
      ...totals,
      at: new Date(at * 1_000),
      group: grp,
      requestMs: quantiles(requestMs),
      visibleMs: quantiles(visibleMs),
    }))
  }

  async report(query: UsageReportQuery): Promise<UsageReport> {
    const [row] = await this.rows<ReportRow>(reportQuery(query))
    if (row === undefined) throw new Error('a report has no row')
    const { visibleMs, firstReadMs, acceptMs, firstMailAt, lastMailAt, ...counts } = row
    const report = {
      ...counts,
      visibleMs: quantilesAndMax(visibleMs),
      firstReadMs: quantilesAndMax(firstReadMs),
      acceptMs: quantilesAndMax(acceptMs),
    }
    if (counts.mails === 0) return { ...report, firstMailAt: null, lastMailAt: null, timeline: [] }
    const [first, last] = [new Date(firstMailAt), new Date(lastMailAt)]
    return {
      ...report,
      firstMailAt: first,
      lastMailAt: last,
      timeline: timelineOf(first, last, await this.mailsByBucket(query, first, last)),
    }
  }

  /** Counts mails up to the last one in the report. More may have been received since it was read. */
  private async mailsByBucket(query: UsageReportQuery, first: Date, last: Date): Promise<BucketCounts> {
    const span = { ...query, from: first, to: new Date(last.getTime() + 1) }
    const rows = await this.rows<{ start: number; mails: number; bytes: number }>(
      timelineQuery(span, bucketMs(first, last)),
    )
    return new Map(rows.map(({ start, ...counts }) => [start, counts]))
  }

  async totals(accountId: AccountId, keyIds: readonly KeyId[]): Promise<Map<KeyId, UsageTotals>> {
    if (keyIds.length === 0) return new Map()
    const rows = await this.rows<UsageTotals & { keyId: string }>({
      query: `SELECT key_id AS keyId, ${sumsOf('t')}
        FROM usage_day AS t WHERE t.account_id = {account:String} AND t.key_id IN {keys:Array(String)}
        GROUP BY key_id ${QUERY_LIMITS}`,
      query_params: { account: accountId, keys: keyIds },
    })
    return new Map(rows.flatMap(({ keyId, ...totals }) => (isId('key', keyId) ? [[keyId, totals]] : [])))
  }

  export(query: UsageExportQuery, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return this.limit(orUnavailable, () => this.streamFile(exportedFile(query), signal))
  }

  private rows<Row>(query: BoundQuery): Promise<Row[]> {
    return this.limit(orUnavailable, async () => {
      const answer = await this.client.query({ ...query, format: 'JSONEachRow' })
      return answer.json<Row>()
    })
  }
}

function nullIfTooMany(error: unknown): null {
  if (error instanceof UsageUnavailableError && errorCode(error.cause) === TOO_MANY_ROWS) return null
  throw error
}

function quantiles([p50 = null, p95 = null, p99 = null]: Latency): Quantiles | null {
  if (p50 === null || p95 === null || p99 === null) return null
  return { p50: rounded(p50), p95: rounded(p95), p99: rounded(p99) }
}

function quantilesAndMax(latency: Latency): QuantilesAndMax | null {
  const found = quantiles(latency)
  return found && { ...found, max: rounded(latency[3] ?? 0) }
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}
