import { USAGE_TABLES } from '../usage-rows.js'
import type { ExportFormat, UsageExportQuery } from '../usage-store.js'
import { QUANTILES } from './schema.js'
import { spanClause, type BoundQuery } from './figures-query.js'

const FORMAT: Readonly<Record<ExportFormat, string>> = {
  parquet: 'Parquet',
  ndjson: 'JSONEachRow',
  csv: 'CSVWithNames',
}

/** A key's figures by the minute, with quantiles in place of the states that ClickHouse merges. */
const USAGE = `SELECT time, environment, key_id, sum(u.requests) AS requests, sum(u.refusals) AS refusals,
    sum(u.inboxes) AS inboxes, sum(u.mails) AS mails, sum(u.bytes) AS bytes,
    quantilesTDigestMerge(${QUANTILES})(u.request_ms) AS request_quantiles,
    quantilesTDigestMerge(${QUANTILES})(u.visible_ms) AS visible_quantiles
  FROM (SELECT * FROM usage_minute AS t WHERE t.account_id = {account:String}
    AND t.time >= fromUnixTimestamp64Milli({from:Int64}) AND t.time < fromUnixTimestamp64Milli({to:Int64})) AS u
  GROUP BY time, environment, key_id`

const USAGE_FILE = `SELECT time, environment, key_id, requests, refusals, inboxes, mails, bytes,
    ${['request', 'visible'].flatMap((what) => quantileColumns(what)).join(', ')}
  FROM (${USAGE}) ORDER BY time, environment, key_id`

function quantileColumns(what: string): string[] {
  return ['p50', 'p95', 'p99'].map((name, index) => {
    const value = `${what}_quantiles[${index + 1}]`
    return `if(isNaN(${value}), NULL, ${value}) AS ${what}_ms_${name}`
  })
}

export interface ExportedFile {
  /** What stands in it, without a FORMAT. */
  rows: BoundQuery
  /** As ClickHouse calls it. */
  format: string
}

export const EXPORT_SETTINGS =
  'SETTINGS output_format_json_quote_64bit_integers = 0, output_format_json_escape_forward_slashes = 0, ' +
  "date_time_output_format = 'iso', max_memory_usage = 2000000000, max_bytes_before_external_group_by = 500000000"

/** What one account had, by key or webhook and then by time, which is the order of the tables: none of it is held for sorting; without the account's own id, which is the same in every row. */
export function exportedFile({ accountId, from, to, table, format }: UsageExportQuery): ExportedFile {
  const query_params = { account: accountId, from: from.getTime(), to: to.getTime() }
  const query = table === 'usage' ? USAGE_FILE : eventsOf(table)
  return { rows: { query, query_params }, format: FORMAT[format] }
}

function eventsOf(table: keyof typeof USAGE_TABLES): string {
  const columns = USAGE_TABLES[table].filter((name) => name !== 'account_id')
  return `SELECT ${columns.join(', ')} FROM ${table} AS t
    WHERE t.account_id = {account:String} AND ${spanClause('')}
    ORDER BY t.account_id, ${table === 'webhook_events' ? 't.webhook_id' : 't.key_id'}, t.at`
}
