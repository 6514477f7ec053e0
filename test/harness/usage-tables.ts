import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import type { UsageQueries, UsageSink } from '#libs/ports/usage/usage-store.js'

/** What a statement of somebody else's answers: columns in their order, and rows. */
export interface Answer {
  columns: { name: string; type: string }[]
  rows: Record<string, unknown>[]
}

/** Mayfly's tables of usage figures, written by its own sink and asked in SQL, as a dashboard would. */
export interface UsageTables {
  sink: UsageSink
  queries: UsageQueries
  ask(query: string, parameters?: Record<string, unknown>): Promise<Answer>
  /** What answers nothing. */
  run(statement: string): Promise<void>
  close(): Promise<void>
}

/** On chDB, in a folder of their own. */
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
    ask: (query, parameters = {}) => answerOf(client, query, parameters),
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
