import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, mkdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import { USAGE_TABLES } from '#libs/ports/usage/usage-rows.js'
import type { ExportFormat, ExportTable, UsageExportQuery } from '#libs/ports/usage/usage-store.js'
import { QUANTILES, ROUTES, USAGE, WEBHOOKS } from './schema.js'
import { spanClause, type BoundQuery } from './figures-query.js'

const FORMAT: Readonly<Record<ExportFormat, string>> = {
  parquet: 'Parquet',
  ndjson: 'JSONEachRow',
  csv: 'CSVWithNames',
}

/** Columns that have another name in a file, because some SQL dialects reserve the name that they have in ClickHouse. */
const NAMES_IN_FILE: Readonly<Record<string, string>> = {
  at: 'occurred_at',
  time: 'starts_at',
  method: 'http_method',
  partition: 'log_partition',
  offset: 'log_offset',
}

/** The tables of figures. They may have several rows for the same minute, hour or day until ClickHouse merges them. */
const FIGURES = {
  usage_minute: USAGE,
  usage_hour: USAGE,
  usage_day: USAGE,
  routes_minute: ROUTES,
  webhooks_minute: WEBHOOKS,
}

/** The query for the rows of a file, without the clause FORMAT. */
interface ExportedFile extends BoundQuery {
  /** The format's name in ClickHouse. */
  format: string
}

/** Of the text of a query, which has the names of up to 1,000 keys. */
export const MAX_QUERY_BYTES = '10000000'

const EXPORT_SETTINGS = `SETTINGS ${[
  'output_format_json_quote_64bit_integers = 0',
  'output_format_json_escape_forward_slashes = 0',
  "format_csv_null_representation = ''",
  "date_time_output_format = 'iso'",
  'max_memory_usage = 2000000000',
  'max_bytes_before_external_group_by = 500000000',
].join(', ')}`

/**
 * The rows of one account. Events keep the order of their table, by key or webhook and then by time, so that ClickHouse
 * need not sort them in memory.
 */
export function exportedFile(query: UsageExportQuery): ExportedFile {
  const { accountId, from, to, table, format, keyNames } = query
  const query_params = { account: accountId, from: from.getTime(), to: to.getTime() }
  return { query: withNames(keyNames, queryOf(table, format)), query_params, format: FORMAT[format] }
}

/** The names are in the text, because parameters are in the URL, to which ClickHouse has a limit. */
function withNames(keyNames: ReadonlyMap<string, string>, query: string): string {
  const [ids, names] = [arrayOf(['', ...keyNames.keys()]), arrayOf(['', ...keyNames.values()])]
  return `WITH ${ids} AS key_ids, ${names} AS key_names ${query}`
}

/** A literal of type Array(String). */
function arrayOf(texts: readonly string[]): string {
  const quoted = texts.map((text) => `'${text.replaceAll(/[\\']/g, (character) => `\\${character}`)}'`)
  return `[${quoted.join(', ')}]`
}

function queryOf(table: ExportTable, format: ExportFormat): string {
  if (table === 'usage') return figuresOf('usage_minute')
  return isFigures(table) ? figuresOf(table) : eventsOf(table, format)
}

function isFigures(table: ExportTable): table is keyof typeof FIGURES {
  return table in FIGURES
}

function figuresOf(table: keyof typeof FIGURES): string {
  const { keys: ownKeys, sums, latencies } = FIGURES[table]
  const keys = ['environment', ...Object.keys(ownKeys)]
  const groups = ['account_id', 'time', ...keys]
  const merged = [
    ...sums.map((name) => `sum(u.${name}) AS ${name}`),
    ...latencies.map((name) => `quantilesTDigestMerge(${QUANTILES})(u.${name}) AS ${name}`),
  ]
  const columns = [
    'account_id',
    `toDateTime64(time, 3, 'UTC') AS ${NAMES_IN_FILE.time}`,
    ...keys.flatMap(inFile),
    ...sums,
    ...latencies.flatMap(quantileColumns),
  ]
  return `SELECT ${columns.join(', ')}
    FROM (SELECT ${[...groups, ...merged].join(', ')}
      FROM (SELECT * FROM ${table} AS t WHERE t.account_id = {account:String}
        AND t.time >= fromUnixTimestamp64Milli({from:Int64}) AND t.time < fromUnixTimestamp64Milli({to:Int64})) AS u
      GROUP BY ${groups.join(', ')})
    ORDER BY ${groups.join(', ')}`
}

/** ClickHouse returns NaN for quantiles of no values; the file has null. */
function quantileColumns(latency: string): string[] {
  return ['p50', 'p95', 'p99'].map((name, index) => {
    const value = `${latency}[${index + 1}]`
    return `if(isNaN(${value}), NULL, ${value}) AS ${latency}_${name}`
  })
}

function eventsOf(table: keyof typeof USAGE_TABLES, format: ExportFormat): string {
  const names = USAGE_TABLES[table].filter((name) => name !== 'account_id')
  const columns = names.flatMap((name) =>
    // CSV has no arrays.
    name === 'labels' && format === 'csv' ? 'toJSONString(t.labels) AS labels' : inFile(name),
  )
  return `SELECT account_id, ${columns.join(', ')} FROM ${table} AS t
    WHERE t.account_id = {account:String} AND ${spanClause('')}
    ORDER BY t.account_id, ${table === 'webhook_events' ? 't.webhook_id' : 't.key_id'}, t.at`
}

const KEY_NAME = "transform(key_id, key_ids, key_names, '') AS key_name"

function inFile(name: string): string[] {
  if (name === 'key_id') return [name, KEY_NAME]
  const other = NAMES_IN_FILE[name]
  return [other === undefined ? name : `${name} AS ${other}`]
}

/** Streams the bytes of a file. */
export type StreamFile = (file: ExportedFile, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/** Streams the response of a server. */
export function fromServer(client: ClickHouseClient): StreamFile {
  return async ({ query, query_params, format }, signal) => {
    const text = `${query} ${EXPORT_SETTINGS} FORMAT ${format}`
    const clickhouse_settings = { max_query_size: MAX_QUERY_BYTES }
    const { stream } = await client.exec({
      ...{ query: text, query_params, clickhouse_settings },
      abort_signal: signal,
    })
    return stream
  }
}

/** chDB would hold the whole result in memory, so it writes it to a temporary file. */
export function fromChdb(client: ClickHouseClient, folder: string): StreamFile {
  // Remove the files of a process that was killed.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return async ({ query, query_params, format }, signal) => {
    const path = join(folder, randomUUID())
    try {
      await client.command({
        query: `INSERT INTO FUNCTION file({path:String}, '${format}') ${query} ${EXPORT_SETTINGS}`,
        query_params: { ...query_params, path },
      })
      signal.throwIfAborted()
    } catch (error) {
      await rm(path, { force: true })
      throw error
    }
    const file = createReadStream(path)
    signal.addEventListener('abort', () => file.destroy(), { once: true })
    // An open file can be read after it was removed from its folder.
    await once(file, 'open')
    await rm(path, { force: true })
    return file
  }
}
