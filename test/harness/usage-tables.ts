import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import type { UsageQueries, UsageSink } from '#libs/ports/usage/usage-store.js'

/** The result of a query: columns in order, and rows. */
export interface Answer {
  columns: { name: string; type: string }[]
  rows: Record<string, unknown>[]
}

/** Mayfly's usage tables, written by its sink and queried with SQL, as a dashboard does. */
export interface UsageTables {
  sink: UsageSink
  queries: UsageQueries
  query(query: string, parameters?: Record<string, unknown>): Promise<Answer>
  /** Runs a statement without a result. */
  run(statement: string): Promise<void>
  close(): Promise<void>
}

/** Opens the tables on chDB, in a temporary folder. */
export async function openUsageTables(): Promise<UsageTables> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-usage-'))
  const usage = await openChdbUsage(folder)
  if (usage === null) throw new Error('chDB is not installed')
  await usage.prepare()
  const client = await chdbClient(join(folder, 'tables'))
  if (client === null) throw new Error('chDB is not installed')
  await client.command({ query: 'USE mayfly' })
  return {
    sink: usage.sink,
    queries: usage.queries,
    query: (query, parameters = {}) => answerOf(client, query, parameters),
    async run(statement) {
      await client.command({ query: statement })
    },
    async close() {
      await client.close()
      await usage.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function answerOf(
  client: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown>,
): Promise<Answer> {
  const result = await client.query({
    query: `${query}\nSETTINGS output_format_json_quote_64bit_integers = 0`,
    query_params,
    format: 'JSON',
  })
  const { meta = [], data } = await result.json<Record<string, unknown>>()
  return { columns: meta, rows: data }
}
