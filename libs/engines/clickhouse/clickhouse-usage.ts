import { hash } from 'node:crypto'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { ClickHouseClient } from '@clickhouse/client'
import pLimit, { type LimitFunction } from 'p-limit'
import { isId } from '#libs/domain/ids/typeid.js'
import { USAGE_TABLES } from '#libs/ports/usage/usage-rows.js'
import {
  bucketMs,
  timelineOf,
  UsageUnavailableError,
  type BucketCounts,
  type Quantiles,
  type QuantilesAndMax,
  type UsageBatch,
  type UsageFigures,
  type UsageQueries,
  type UsageReport,
  type UsageReportQuery,
  type UsageSink,
  type UsageStore,
  type UsageTotals,
} from '#libs/ports/usage/usage-store.js'
import { makeFolder } from '#libs/runtime/folder.js'
import { chdbClient, errorCode, orUnavailable, serverClient, type ServerAddress } from './clients.js'
import { exportedFile, fromChdb, fromServer, MAX_QUERY_BYTES, type StreamFile } from './export-query.js'
import {
  figuresQuery,
  QUERY_LIMITS,
  reportQuery,
  sumsOf,
  timelineQuery,
  type BoundQuery,
} from './figures-query.js'
import { migrate } from './schema.js'

const CHDB_DATABASE = 'mayfly'

/** Each call of chDB blocks one of the four threads of Node's pool, which also compresses mail. */
const IN_PROCESS = { writes: 1, queries: 2 }
const ON_SERVER = { writes: 3, queries: 8 }

/**
 * Opens chDB in this process, on a folder of its own, and migrates its tables. Null if chDB does not support this system.
 * Rejects if it can't read its files.
 */
export async function openChdbUsage(folder: string): Promise<UsageStore | null> {
  makeFolder(folder)
  const client = await chdbClient(join(folder, 'tables'))
  if (client === null) return null
  try {
    await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${CHDB_DATABASE}` })
    await client.command({ query: `USE ${CHDB_DATABASE}` })
    await client.command({ query: `SET max_query_size = ${MAX_QUERY_BYTES}` })
    await migrate(client)
  } catch (error) {
    await client.close()
    throw error
  }
  return storeOn(client, IN_PROCESS, fromChdb(client, join(folder, 'exports')))
}

/** Uses a ClickHouse server. Connects at the first request. */
export function serverUsage(address: ServerAddress): UsageStore {
  const client = serverClient(address)
  return storeOn(client, ON_SERVER, fromServer(client), async () => {
    // A client can't use a database that does not exist yet.
    const setup = serverClient({ ...address, database: 'default' })
    try {
      await setup.command({ query: `CREATE DATABASE IF NOT EXISTS ${address.database}` })
    } finally {
      await setup.close()
    }
    await migrate(client)
  })
}

/** `max` is the number of writes and of queries that run at once. */
function storeOn(
  client: ClickHouseClient,
  max: { writes: number; queries: number },
  streamFile: StreamFile,
  prepare?: () => Promise<void>,
): UsageStore {
  return {
    sink: clickHouseUsageSink(client, pLimit(max.writes)),
    queries: clickHouseUsageQueries(client, streamFile, pLimit(max.queries)),
    prepare: () => orUnavailable(async () => prepare?.()),
    close: () => client.close(),
  }
}

/*
 * Relies on deduplication by token (`insert_deduplication_token`), in the tables and in those that their materialized
 * views write to (`deduplicate_blocks_in_dependent_materialized_views`), within `non_replicated_deduplication_window`
 * blocks. An insert is one block, so that its token covers all its rows.
 */

/** As long as ClickHouse remembers its token, a repeated insert is dropped as a whole, in each table and view. */
const EXACTLY_ONCE = [
  'async_insert = 0',
  'insert_deduplicate = 1',
  'deduplicate_blocks_in_dependent_materialized_views = 1',
  // An insert of any size is one block. Further blocks would be recognized by their number only.
  'input_format_parallel_parsing = 0',
  'max_insert_threads = 1',
  // A lone surrogate is stored as its escape sequence: the content of one event must not stop all others.
  'input_format_json_throw_on_bad_escape_sequence = 0',
].join(', ')

export function clickHouseUsageSink(client: ClickHouseClient, limit: LimitFunction): UsageSink {
  return {
    writtenTo: (logId, topic) =>
      orUnavailable(async () => {
        const answer = await client.query({
          query: `SELECT partition, toFloat64(max(written_to)) AS writtenTo FROM sink_positions
            WHERE log_id = {logId:String} AND topic = {topic:String} GROUP BY partition`,
          query_params: { logId, topic },
          format: 'JSONEachRow',
        })
        const rows = await answer.json<{ partition: number; writtenTo: number }>()
        return new Map(rows.map(({ partition, writtenTo }) => [partition, writtenTo]))
      }),

    write({ logId, topic, ranges, rows }) {
      const token = tokenOf(logId, topic, ranges)
      return limit(orUnavailable, async () => {
        for (const [table, group] of Map.groupBy(rows, (each) => each.table)) {
          const settings = `${EXACTLY_ONCE}, insert_deduplication_token = '${table}/${token}'`
          const texts = group.map(({ json }, index) => (index === 0 ? json : `,${json}`))
          await insert(table, USAGE_TABLES[table], settings, texts)
        }
        // Written after all rows: if the position says that a range is written, it is.
        const positions = ranges.map(({ partition, end }) => [logId, topic, partition, end])
        const columns = ['log_id', 'topic', 'partition', 'written_to']
        await insert('sink_positions', columns, EXACTLY_ONCE, [JSON.stringify(positions).slice(1, -1)])
      })
    },
  }

  async function insert(
    table: string,
    columns: readonly string[],
    settings: string,
    texts: readonly string[],
  ): Promise<void> {
    const { stream } = await client.exec({
      query: `INSERT INTO ${table} (${columns.join(', ')}) SETTINGS ${settings} FORMAT JSONCompactEachRow`,
      // As strings, because chDB's connection would convert bytes to a string.
      values: Readable.from(texts),
    })
    await stream.resume().toArray()
  }
}

function tokenOf(logId: string, topic: string, ranges: UsageBatch['ranges']): string {
  const parts = ranges.map(({ partition, first, end }) => `${partition}:${first}-${end}`)
  return hash('sha256', [logId, topic, ...parts].join(' '), 'hex')
}

/** p50, p95 and p99; in a report, also the maximum. A quantile of no values is NaN, which is null in JSON. */
type Latency = readonly (number | null)[]

/** Figures as ClickHouse returns them, with times as numbers. */
type Row<Figures> = {
  [Name in keyof Figures]: Figures[Name] extends Quantiles | null
    ? Latency
    : Figures[Name] extends Date | null
      ? number
      : Figures[Name]
}

/** `at` is in seconds since 1970. */
type FiguresRow = Row<Omit<UsageFigures, 'group'>> & { grp: string | null }

/** Times are in milliseconds since 1970. */
type ReportRow = Row<Omit<UsageReport, 'timeline'>>

const TOO_MANY_ROWS = '158'

function clickHouseUsageQueries(
  client: ClickHouseClient,
  streamFile: StreamFile,
  limit: LimitFunction,
): UsageQueries {
  return {
    async figures(query) {
      if (query.from >= query.to) return []
      const rows = await rowsOf<FiguresRow>(figuresQuery(query)).catch(nullIfTooMany)
      if (rows === null || rows.length > query.limit) return null
      return rows.map(({ at, grp, requestMs, visibleMs, ...totals }) => ({
        ...totals,
        at: new Date(at * 1_000),
        group: grp,
        requestMs: quantiles(requestMs),
        visibleMs: quantiles(visibleMs),
      }))
    },

    async report(query) {
      const [row] = await rowsOf<ReportRow>(reportQuery(query))
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
      const timeline = timelineOf(first, last, await mailsByBucket(query, first, last))
      return { ...report, firstMailAt: first, lastMailAt: last, timeline }
    },

    async totals(accountId, keyIds) {
      if (keyIds.length === 0) return new Map()
      const rows = await rowsOf<UsageTotals & { keyId: string }>({
        query: `SELECT key_id AS keyId, ${sumsOf('t')}
          FROM usage_day AS t WHERE t.account_id = {account:String} AND t.key_id IN {keys:Array(String)}
          GROUP BY key_id ${QUERY_LIMITS}`,
        query_params: { account: accountId, keys: keyIds },
      })
      return new Map(rows.flatMap(({ keyId, ...totals }) => (isId('key', keyId) ? [[keyId, totals]] : [])))
    },

    export: (query, signal) => limit(orUnavailable, () => streamFile(exportedFile(query), signal)),
  }

  /** Counts mails up to the last one in the report. More may have been received since it was read. */
  async function mailsByBucket(query: UsageReportQuery, first: Date, last: Date): Promise<BucketCounts> {
    const span = { ...query, from: first, to: new Date(last.getTime() + 1) }
    const rows = await rowsOf<{ start: number; mails: number; bytes: number }>(
      timelineQuery(span, bucketMs(first, last)),
    )
    return new Map(rows.map(({ start, ...counts }) => [start, counts]))
  }

  function rowsOf<Row>(query: BoundQuery): Promise<Row[]> {
    return limit(orUnavailable, async () => {
      const answer = await client.query({ ...query, format: 'JSONEachRow' })
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
