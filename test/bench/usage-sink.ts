import { join } from 'node:path'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { startAnalytics } from '#apps/analytics/analytics.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { USAGE_TABLES } from '#libs/ports/usage/usage-rows.js'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import { until } from '#test/harness/until.js'
import { ACCOUNT, KEY_IDS, recordOf, rowsOf, usageEventOf } from './usage-events.js'

/** The number on the embedded engine. */
const PARTITIONS = 8
const APPENDED_AT_ONCE = 2_000
const BATCH_ROWS = 50_000
const WITHIN_MS = 300_000

/** Opens a log in a folder. */
export function openLog(folder: string): Promise<LmdbEventLog> {
  return openLmdbEventLog({
    path: join(folder, 'log.mdb'),
    partitions: PARTITIONS,
    retentionMs: () => null,
    now: () => new Date(),
    onPruneError: (error) => {
      throw error
    },
  })
}

/** Appends that many usage events of the last hour to a log. */
export async function appendUsage(log: EventLog, events: number): Promise<void> {
  for (let number = 0; number < events; number += APPENDED_AT_ONCE) {
    const records = Array.from({ length: Math.min(APPENDED_AT_ONCE, events - number) }, (_, index) => {
      const at = timeOf(number + index, events)
      return recordOf(usageEventOf(number + index, at), at)
    })
    await Promise.all(records.map((record) => log.append('usage-events', record)))
  }
}

/** Events per second that analytics counts, from its start on an empty store until the last one is counted. */
export async function countingRate(log: EventLog, folder: string, events: number): Promise<number> {
  const usage = await openStore(folder)
  try {
    const registry = new Registry()
    const started = performance.now()
    await using running = new AsyncDisposableStack()
    await startAnalytics({ engine: { log, usage }, logger: pino({ level: 'warn' }), registry, running })
    const rows = () => rowsWritten(registry)
    await until('every event to be counted', async () => (await rows()) >= events, WITHIN_MS)
    const seconds = (performance.now() - started) / 1_000
    await running.disposeAsync()
    await verifyCounts(usage, events)
    return events / seconds
  } finally {
    await usage.close()
  }
}

/** Rows per second of the same events in the same tables, inserted in batches by the client alone. */
export async function bareInsertRate(folder: string, events: number): Promise<number> {
  await (await openStore(folder)).close()
  const client = await chdbClient(join(folder, 'tables'))
  if (client === null) throw new Error('chDB is not installed')
  let ms = 0
  try {
    await client.command({ query: 'USE mayfly' })
    for (let number = 0; number < events; number += BATCH_ROWS) {
      const length = Math.min(BATCH_ROWS, events - number)
      const numbers = Array.from({ length }, (_, index) => number + index)
      const rows = numbers.flatMap((each) => rowsOf(each, timeOf(each, events)))
      for (const [table, group] of Map.groupBy(rows, (row) => row.table)) {
        const values = group.map((row) => row.values)
        const [first = '', ...others] = USAGE_TABLES[table]
        const started = performance.now()
        await client.insert({ table, columns: [first, ...others], values, format: 'JSONCompactEachRow' })
        ms += performance.now() - started
      }
    }
  } finally {
    await client.close()
  }
  const usage = await openStore(folder)
  try {
    await verifyCounts(usage, events)
  } finally {
    await usage.close()
  }
  return events / (ms / 1_000)
}

export async function openStore(folder: string): Promise<UsageStore> {
  const usage = await openChdbUsage(folder)
  if (usage === null) throw new Error('chDB is not installed')
  await usage.prepare()
  return usage
}

async function verifyCounts({ queries }: UsageStore, events: number): Promise<void> {
  const totals = await queries.totals(ACCOUNT, KEY_IDS)
  const requests = [...totals.values()].reduce((sum, each) => sum + each.requests, 0)
  const expected = Math.floor(events / 10) * 7
  if (requests !== expected) throw new Error(`${requests} requests were counted, not ${expected}`)
}

async function rowsWritten(registry: Registry): Promise<number> {
  const { values = [] } = (await registry.getSingleMetric('mayfly_usage_rows_total')?.get()) ?? {}
  return values.reduce((sum, { value }) => sum + value, 0)
}

const endMs = Math.floor(Date.now() / 1_000) * 1_000

function timeOf(number: number, events: number): Date {
  return new Date(endMs - Math.floor(((events - number) * 3_600_000) / events))
}
