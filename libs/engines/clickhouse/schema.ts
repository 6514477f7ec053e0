import type { ClickHouseClient } from '@clickhouse/client'

/*
 * The tables of usage figures, as numbered migrations. An existing migration is never changed; a new version is a new
 * entry. Every statement is idempotent, also if two processes run it at once, so that a start may die midway.
 *
 * Four tables hold raw events for 90 days. Materialized views compute figures from them by minute (kept for 400 days),
 * hour and day (kept for ever). Latencies are stored as t-digests, whose states merge over any span to quantiles with an
 * error of about one percent.
 */

interface Migration {
  version: number
  statements: readonly string[]
}

/** The quantiles of every latency. */
export const QUANTILES = '0.5, 0.95, 0.99'
const DIGEST = `AggregateFunction(quantilesTDigest(${QUANTILES}), Float32)`

/**
 * A table recognizes a repeated batch by its token. It remembers the tokens of as many batches as the window has, far
 * more than are written before a batch is repeated. An insert is synced to disk before it is acknowledged, because the
 * consumer group's offset is committed after it.
 */
const DURABLE_AND_DEDUPLICATED = [
  'non_replicated_deduplication_window = 10000',
  'fsync_after_insert = 1',
  'fsync_part_directory = 1',
].join(', ')

const RAW_DAYS = 90
const MINUTE_DAYS = 400

function raw(name: string, columns: string, order: string): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (${columns},
    partition UInt16,
    offset UInt64 CODEC(Delta, ZSTD(1))
  ) ENGINE = MergeTree PARTITION BY toYYYYMM(at) ORDER BY (${order})
  TTL toDateTime(at) + INTERVAL ${RAW_DAYS} DAY
  SETTINGS ${DURABLE_AND_DEDUPLICATED}`
}

const AT = `at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))`
const TENANT = 'account_id LowCardinality(String), environment LowCardinality(String)'
/** `<name>:<value>`. The index skips blocks of rows that lack a label. */
const LABELS = 'labels Array(LowCardinality(String)), INDEX labels_in labels TYPE bloom_filter GRANULARITY 1'

/** The counts of usage figures, which add up over any span. */
export const COUNTS = ['requests', 'refusals', 'inboxes', 'mails', 'bytes']

/** Figures of each account and environment over time. */
interface Figures {
  /** What the figures are of, with their SQL types. */
  keys: Readonly<Record<string, string>>
  sums: readonly string[]
  /** States of t-digests. */
  latencies: readonly string[]
}

export const USAGE: Figures = {
  keys: { key_id: 'LowCardinality(String)' },
  sums: COUNTS,
  latencies: ['request_ms', 'visible_ms'],
}
export const ROUTES: Figures = {
  keys: { method: 'LowCardinality(String)', route: 'LowCardinality(String)', status: 'UInt16' },
  sums: ['requests'],
  latencies: ['request_ms'],
}
export const WEBHOOKS: Figures = {
  keys: { webhook_id: 'String CODEC(ZSTD(1))' },
  sums: ['requested', 'succeeded', 'failed', 'abandoned'],
  latencies: ['latency_ms'],
}

function figures(name: string, { keys, sums, latencies }: Figures, partition: string, ttl = ''): string {
  const columns = [
    ...Object.entries(keys).map(([key, type]) => `${key} ${type}`),
    ...sums.map((sum) => `${sum} SimpleAggregateFunction(sum, UInt64)`),
    ...latencies.map((latency) => `${latency} ${DIGEST}`),
  ]
  return `CREATE TABLE IF NOT EXISTS ${name} (
    time DateTime('UTC') CODEC(Delta, ZSTD(1)), ${TENANT}, ${columns.join(', ')}
  ) ENGINE = AggregatingMergeTree PARTITION BY ${partition}
  ORDER BY (account_id, environment, ${Object.keys(keys).join(', ')}, time)
  ${ttl} SETTINGS ${DURABLE_AND_DEDUPLICATED}`
}

/** What fills a table of figures from the rows `t` of another one; by default from raw events, by the minute. */
interface Filling {
  values: Readonly<Record<string, string>>
  where?: string
  start?: string
}

function view(from: string, to: string, { keys }: Figures, filling: Filling): string {
  const { values, where = '1', start = 'toStartOfMinute(t.at)' } = filling
  const groups = ['account_id', 'environment', ...Object.keys(keys)].join(', ')
  const columns = Object.entries(values).map(([name, value]) => `${value} AS ${name}`)
  return `CREATE MATERIALIZED VIEW IF NOT EXISTS ${to}_from_${from} TO ${to} AS
    SELECT ${start} AS time, ${groups}, ${columns.join(', ')}
    FROM ${from} AS t WHERE ${where} GROUP BY ${groups}, time`
}

function rollUp(from: string, to: string, start: string): string {
  const sums = COUNTS.map((name) => [name, `sum(t.${name})`] as const)
  const merged = USAGE.latencies.map(
    (name) => [name, `quantilesTDigestMergeState(${QUANTILES})(t.${name})`] as const,
  )
  return view(from, to, USAGE, { values: Object.fromEntries([...sums, ...merged]), start })
}

/** The state of a digest of a Float32. */
export function digestOf(value: string, condition: string): string {
  return `quantilesTDigestStateIf(${QUANTILES})(${value}, ${condition})`
}

/** Excludes waits and event streams: they last as long as their client chooses, which says nothing about latency. */
const IS_ANSWERED_AT_ONCE = "t.route NOT LIKE '%/wait' AND t.route NOT LIKE '%/events'"

/** The usage figures to which the rows `t` of each table of raw events contribute. */
export const USAGE_SOURCES: Readonly<Record<string, { where: string; values: Record<string, string> }>> = {
  requests: {
    where: '1',
    values: {
      requests: 'count()',
      refusals: 'countIf(t.refused)',
      request_ms: digestOf('t.duration_ms', IS_ANSWERED_AT_ONCE),
    },
  },
  inbox_events: {
    where: "t.type IN ('inbox.created', 'message.received')",
    values: {
      inboxes: "countIf(t.type = 'inbox.created')",
      mails: "countIf(t.type = 'message.received')",
      bytes: "sumIf(t.bytes, t.type = 'message.received')",
    },
  },
  mail_events: {
    where: "t.type IN ('refused', 'shown')",
    values: {
      refusals: "countIf(t.type = 'refused')",
      visible_ms: digestOf('t.ms', "t.type = 'shown'"),
    },
  },
}

const WEBHOOK_SUMS = WEBHOOKS.sums.map((type) => [type, `countIf(t.type = '${type}')`] as const)

const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    statements: [
      raw(
        'requests',
        `${AT}, ${TENANT}, key_id LowCardinality(String),
        method LowCardinality(String), route LowCardinality(String), status UInt16, refused Bool,
        duration_ms Float32, request_bytes UInt32, response_bytes UInt64,
        inbox_id String CODEC(ZSTD(1)), ${LABELS}`,
        'account_id, key_id, at',
      ),
      raw(
        'inbox_events',
        `${AT}, type LowCardinality(String), ${TENANT}, key_id LowCardinality(String),
        inbox_id String CODEC(ZSTD(1)), message_id String CODEC(ZSTD(1)), bytes UInt32, ${LABELS}`,
        'account_id, key_id, at',
      ),
      raw(
        'mail_events',
        `${AT}, type LowCardinality(String), ${TENANT}, key_id LowCardinality(String),
        inbox_id String CODEC(ZSTD(1)), message_id String CODEC(ZSTD(1)), bytes UInt32, ms Float32,
        reason LowCardinality(String), code UInt16, fingerprint String CODEC(ZSTD(1)), ${LABELS}`,
        'account_id, key_id, at',
      ),
      raw(
        'webhook_events',
        `${AT}, type LowCardinality(String), ${TENANT},
        webhook_id String CODEC(ZSTD(1)), delivery_id String CODEC(ZSTD(1)),
        attempt UInt16, status UInt16, latency_ms UInt32, reason String CODEC(ZSTD(1))`,
        'account_id, webhook_id, at',
      ),
      figures('usage_minute', USAGE, 'toYYYYMM(time)', `TTL time + INTERVAL ${MINUTE_DAYS} DAY`),
      figures('usage_hour', USAGE, 'toYear(time)'),
      figures('usage_day', USAGE, 'tuple()'),
      figures('routes_minute', ROUTES, 'toYYYYMM(time)', `TTL time + INTERVAL ${RAW_DAYS} DAY`),
      figures('webhooks_minute', WEBHOOKS, 'toYYYYMM(time)', `TTL time + INTERVAL ${RAW_DAYS} DAY`),
      `CREATE TABLE IF NOT EXISTS sink_positions (
        log_id LowCardinality(String), topic LowCardinality(String), partition UInt16,
        written_to UInt64, written_at DateTime64(3, 'UTC') DEFAULT now64(3)
      ) ENGINE = ReplacingMergeTree(written_to) ORDER BY (log_id, topic, partition)
      SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
      ...Object.entries(USAGE_SOURCES).map(([table, source]) => view(table, 'usage_minute', USAGE, source)),
      rollUp('usage_minute', 'usage_hour', 'toStartOfHour(t.time)'),
      rollUp('usage_hour', 'usage_day', 'toStartOfDay(t.time)'),
      view('requests', 'routes_minute', ROUTES, {
        values: { requests: 'count()', request_ms: digestOf('t.duration_ms', '1') },
      }),
      view('webhook_events', 'webhooks_minute', WEBHOOKS, {
        values: {
          ...Object.fromEntries(WEBHOOK_SUMS),
          latency_ms: digestOf('toFloat32(t.latency_ms)', "t.type IN ('succeeded', 'failed')"),
        },
      }),
    ],
  },
  {
    version: 2,
    statements: [
      'ALTER TABLE inbox_events ADD COLUMN IF NOT EXISTS fingerprint String CODEC(ZSTD(1)) AFTER bytes',
    ],
  },
]

/** Migrates the tables to the newest version. Several processes may do so at once: each statement is idempotent. */
export async function migrate(client: ClickHouseClient): Promise<void> {
  await client.command({
    query: `CREATE TABLE IF NOT EXISTS schema_migrations (version UInt32, applied_at DateTime DEFAULT now())
      ENGINE = MergeTree ORDER BY version`,
  })
  const answer = await client.query({
    query: 'SELECT max(version) AS version FROM schema_migrations',
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ version: number }>()
  const applied = row?.version ?? 0
  const newest = MIGRATIONS.at(-1)?.version ?? 0
  if (applied > newest) {
    throw new Error(
      `the tables of usage figures have version ${applied}, but this Mayfly supports versions up to ${newest}: ` +
        `run a newer Mayfly, or configure another database`,
    )
  }
  for (const { version, statements } of MIGRATIONS) {
    if (version <= applied) continue
    for (const query of statements) await client.command({ query })
    await client.command({ query: `INSERT INTO schema_migrations (version) VALUES (${version})` })
  }
}
