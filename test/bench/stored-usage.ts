import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import { idFromBytes, type AccountId } from '#libs/domain/ids/typeid.js'
import { keyId } from './usage-events.js'
import { openStore } from './usage-sink.js'

/*
 * Many events of 90 days, made by ClickHouse itself: of 50 keys of six accounts, the busiest of which has six of ten
 * events, the others an hour each day. Of each key, figures by the hour for the rest of a year. And one run of a day,
 * of 100,000 mails.
 */

export const BUSY_ACCOUNT: AccountId = accountId(0)
export const BUSY_KEY = keyId(0)
/** Of the busy account. */
export const ACCOUNT_KEYS = Array.from({ length: 25 }, (_, number) => keyId(number))
export const RUN_MAILS = 100_000

const DAYS = 90
const KEYS = 50
const DAY_S = 86_400

function accountId(number: number): AccountId {
  return idFromBytes('acc', Buffer.alloc(16, number + 1))
}

/** Of the events the shares that each table has. */
const SHARES = { requests: 0.5, inbox_events: 0.2, mail_events: 0.25, webhook_events: 0.05 }
const TABLES = ['requests', 'inbox_events', 'mail_events', 'webhook_events'] as const

const TENANT = `[${Array.from({ length: 6 }, (_, number) => `'${accountId(number)}'`).join(', ')}][if(k <= 25, 1, 2 + intDiv(k - 26, 5))] AS account_id,
  if(k % 3 = 0, 'production', 'staging') AS environment`
const KEY = `[${Array.from({ length: KEYS }, (_, number) => `'${keyId(number)}'`).join(', ')}][k] AS key_id`
const INBOX = "concat('inb_', lower(hex(sipHash128(intDiv(n, 20))))) AS inbox_id"
const PLACE = 'toUInt16(k % 8) AS partition, n AS offset'

/** Of what the rows are about, as expressions of a row's number. */
interface Story {
  labels: string
  message: string
  inboxEvent: string
  mailEvent: string
}

const EVERYDAY: Story = {
  labels: "if(n % 2 = 0, [concat('run:', toString(intDiv(n, 5000))), 'suite:smoke'], [])",
  message: 'n',
  inboxEvent: "if(n % 20 = 0, 'inbox.created', 'message.received')",
  mailEvent: "['accepted', 'shown', 'read', 'accepted', 'shown'][1 + n % 5]",
}

/** Each mail has come, was accepted, shown and read. */
const RUN: Story = {
  labels: "['run:load', 'suite:load']",
  message: 'intDiv(n, 3)',
  inboxEvent: "'message.received'",
  mailEvent: "['accepted', 'shown', 'read'][1 + n % 3]",
}

/** In the order of the table's own columns, from a row's number `n`, its time `at` and its key's number `k`. */
function columnsOf(table: keyof typeof SHARES, { labels, message, inboxEvent, mailEvent }: Story): string {
  const messageId = `concat('msg_', lower(hex(sipHash128(${message}))))`
  switch (table) {
    case 'requests':
      return `at, ${TENANT}, ${KEY}, ['GET', 'POST', 'DELETE'][1 + n % 3] AS method,
        ['/v1/inboxes', '/v1/inboxes/{id}', '/v1/inboxes/{id}/messages/wait'][1 + n % 3] AS route,
        if(n % 500 = 0, 429, 200) AS status, n % 500 = 0 AS refused, 1 + (sipHash64(n) % 1000) / 50 AS duration_ms,
        0 AS request_bytes, 1200 AS response_bytes, ${INBOX}, ${labels} AS labels, ${PLACE}`
    case 'inbox_events':
      return `at, ${inboxEvent} AS type, ${TENANT}, ${KEY}, ${INBOX}, ${messageId} AS message_id, 5000 AS bytes,
        ${labels} AS labels, ${PLACE}`
    case 'mail_events':
      return `at, ${mailEvent} AS type, ${TENANT}, ${KEY}, ${INBOX}, ${messageId} AS message_id, 5000 AS bytes,
        1 + (sipHash64(n) % 1000) / 20 AS ms, '' AS reason, 0 AS code,
        if(type = 'accepted', lower(hex(sipHash64(n))), '') AS fingerprint, ${labels} AS labels, ${PLACE}`
    case 'webhook_events':
      return `at, if(n % 2 = 0, 'requested', 'succeeded') AS type, ${TENANT}, concat('whk_', toString(k)) AS webhook_id,
        concat('dlv_', lower(hex(sipHash128(n)))) AS delivery_id, 1 AS attempt, 200 AS status,
        5 + n % 90 AS latency_ms, '' AS reason, ${PLACE}`
  }
}

/** Fills tables in a folder; resolves with what is in them then. */
export async function fillTables(folder: string, events: number): Promise<void> {
  await (await openStore(folder)).close()
  await withTables(folder, async (client) => {
    for (const table of TABLES) {
      const rows = Math.floor(events * SHARES[table])
      await fill(
        client,
        table,
        EVERYDAY,
        `SELECT number AS n,
        now64(3) - toIntervalMillisecond(intDiv((${rows} - number) * ${DAYS * DAY_S} * 1000, ${rows})) AS at,
        toUInt32(if(n % 10 < 6, 1, 2 + (toHour(at) * 2 + n % 2) % ${KEYS - 1})) AS k FROM numbers(${rows})`,
      )
    }
    await fillRun(client)
    await client.command({
      query: `INSERT INTO usage_hour SELECT
          toStartOfHour(now() - toIntervalDay(${DAYS + 1})) - toIntervalHour(intDiv(number, ${KEYS})) AS time, ${TENANT}, ${KEY},
          100 AS requests, 1 AS refusals, 5 AS inboxes, 50 AS mails, 250000 AS bytes,
          quantilesTDigestState(0.5, 0.95, 0.99)(toFloat32(number % 100)) AS request_ms,
          quantilesTDigestState(0.5, 0.95, 0.99)(toFloat32(number % 30)) AS visible_ms
        FROM (SELECT number, toUInt32(1 + number % ${KEYS}) AS k FROM numbers(${(365 - DAYS) * 24 * KEYS}))
        GROUP BY number, k`,
    })
  })
}

/** Four hours of yesterday, of the busy key. */
async function fillRun(client: ClickHouseClient): Promise<void> {
  for (const [table, rows] of [
    ['requests', RUN_MAILS],
    ['inbox_events', RUN_MAILS],
    ['mail_events', 3 * RUN_MAILS],
  ] as const) {
    await fill(
      client,
      table,
      RUN,
      `SELECT number AS n, toUInt32(1) AS k,
      now64(3) - toIntervalHour(26) + toIntervalMillisecond(intDiv(number * 14400000, ${rows})) AS at FROM numbers(${rows})`,
    )
  }
}

async function fill(
  client: ClickHouseClient,
  table: keyof typeof SHARES,
  story: Story,
  from: string,
): Promise<void> {
  await client.command({
    query: `INSERT INTO ${table} SELECT ${columnsOf(table, story)} FROM (${from}) SETTINGS max_insert_threads = 1`,
  })
}

export interface TableSize {
  table: string
  rows: number
  bytes: number
}

/** Of each table what it has on disk. */
export function sizesOf(folder: string): Promise<TableSize[]> {
  return withTables(folder, async (client) => {
    const answer = await client.query({
      query: `SELECT table, toFloat64(sum(rows)) AS rows, toFloat64(sum(bytes_on_disk)) AS bytes FROM system.parts
        WHERE active AND database = currentDatabase() GROUP BY table ORDER BY table`,
      format: 'JSONEachRow',
    })
    return answer.json<TableSize>()
  })
}

export async function withTables<Result>(
  folder: string,
  work: (client: ClickHouseClient) => Promise<Result>,
): Promise<Result> {
  const client = await chdbClient(join(folder, 'tables'))
  if (client === null) throw new Error('chDB is not installed')
  try {
    await client.command({ query: 'USE mayfly' })
    return await work(client)
  } finally {
    await client.close()
  }
}
