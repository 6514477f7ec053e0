/*
 * The tables of usage figures, as numbered migrations. An existing migration is never changed; a new version is a new
 * entry. Every statement is idempotent, also if two processes run it at once, so that a start may die midway.
 *
 * Four tables hold raw events for 90 days. Materialized views compute figures from them by minute (kept for 400 days),
 * hour and day (kept for ever). Latencies are stored as t-digests, whose states merge over any span to quantiles with an
 * error of about one percent.
 */

export interface Migration {
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

function figures(name: string, partition: string, ttl: string): string {
  const counts = COUNTS.map((count) => `${count} SimpleAggregateFunction(sum, UInt64)`)
  return `CREATE TABLE IF NOT EXISTS ${name} (
    time DateTime('UTC') CODEC(Delta, ZSTD(1)),
    ${TENANT},
    key_id LowCardinality(String),
    ${counts.join(', ')},
    request_ms ${DIGEST},
    visible_ms ${DIGEST}
  ) ENGINE = AggregatingMergeTree PARTITION BY ${partition}
  ORDER BY (account_id, environment, key_id, time)
  ${ttl} SETTINGS ${DURABLE_AND_DEDUPLICATED}`
}

function rollUp(from: string, to: string, start: string): string {
  const sums = COUNTS.map((count) => `sum(${count}) AS ${count}`)
  return `CREATE MATERIALIZED VIEW IF NOT EXISTS ${to}_from_${from} TO ${to} AS
    SELECT ${start}(finer.time) AS time, account_id, environment, key_id, ${sums.join(', ')},
      quantilesTDigestMergeState(${QUANTILES})(finer.request_ms) AS request_ms,
      quantilesTDigestMergeState(${QUANTILES})(finer.visible_ms) AS visible_ms
    FROM ${from} AS finer GROUP BY account_id, environment, key_id, time`
}

/** Excludes waits and event streams: they last as long as their client chooses, which says nothing about latency. */
export const IS_ANSWERED_AT_ONCE = "route NOT LIKE '%/wait' AND route NOT LIKE '%/events'"

const BY_MINUTE = `SELECT toStartOfMinute(at) AS time, account_id, environment, key_id`
const PER_KEY = 'GROUP BY account_id, environment, key_id, time'

export const MIGRATIONS: readonly Migration[] = [
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
      figures('usage_minute', 'toYYYYMM(time)', `TTL time + INTERVAL ${MINUTE_DAYS} DAY`),
      figures('usage_hour', 'toYear(time)', ''),
      figures('usage_day', 'tuple()', ''),
      `CREATE TABLE IF NOT EXISTS routes_minute (
        time DateTime('UTC') CODEC(Delta, ZSTD(1)),
        ${TENANT},
        method LowCardinality(String), route LowCardinality(String), status UInt16,
        requests SimpleAggregateFunction(sum, UInt64),
        request_ms ${DIGEST}
      ) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(time)
      ORDER BY (account_id, environment, method, route, status, time)
      TTL time + INTERVAL ${RAW_DAYS} DAY SETTINGS ${DURABLE_AND_DEDUPLICATED}`,
      `CREATE TABLE IF NOT EXISTS webhooks_minute (
        time DateTime('UTC') CODEC(Delta, ZSTD(1)),
        ${TENANT},
        webhook_id String CODEC(ZSTD(1)),
        requested SimpleAggregateFunction(sum, UInt64),
        succeeded SimpleAggregateFunction(sum, UInt64),
        failed SimpleAggregateFunction(sum, UInt64),
        abandoned SimpleAggregateFunction(sum, UInt64),
        latency_ms ${DIGEST}
      ) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(time)
      ORDER BY (account_id, environment, webhook_id, time)
      TTL time + INTERVAL ${RAW_DAYS} DAY SETTINGS ${DURABLE_AND_DEDUPLICATED}`,
      `CREATE TABLE IF NOT EXISTS sink_positions (
        log_id LowCardinality(String), topic LowCardinality(String), partition UInt16,
        written_to UInt64, written_at DateTime64(3, 'UTC') DEFAULT now64(3)
      ) ENGINE = ReplacingMergeTree(written_to) ORDER BY (log_id, topic, partition)
      SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
      `CREATE MATERIALIZED VIEW IF NOT EXISTS usage_minute_from_requests TO usage_minute AS
        ${BY_MINUTE}, count() AS requests, countIf(refused) AS refusals,
          quantilesTDigestStateIf(${QUANTILES})(duration_ms, ${IS_ANSWERED_AT_ONCE}) AS request_ms
        FROM requests ${PER_KEY}`,
      `CREATE MATERIALIZED VIEW IF NOT EXISTS usage_minute_from_inbox_events TO usage_minute AS
        ${BY_MINUTE}, countIf(type = 'inbox.created') AS inboxes, countIf(type = 'message.received') AS mails,
          sumIf(inbox_events.bytes, type = 'message.received') AS bytes
        FROM inbox_events WHERE type IN ('inbox.created', 'message.received') ${PER_KEY}`,
      `CREATE MATERIALIZED VIEW IF NOT EXISTS usage_minute_from_mail_events TO usage_minute AS
        ${BY_MINUTE}, countIf(type = 'refused') AS refusals,
          quantilesTDigestStateIf(${QUANTILES})(ms, type = 'shown') AS visible_ms
        FROM mail_events WHERE type IN ('refused', 'shown') ${PER_KEY}`,
      rollUp('usage_minute', 'usage_hour', 'toStartOfHour'),
      rollUp('usage_hour', 'usage_day', 'toStartOfDay'),
      `CREATE MATERIALIZED VIEW IF NOT EXISTS routes_minute_from_requests TO routes_minute AS
        SELECT toStartOfMinute(at) AS time, account_id, environment, method, route, status, count() AS requests,
          quantilesTDigestState(${QUANTILES})(duration_ms) AS request_ms
        FROM requests GROUP BY account_id, environment, method, route, status, time`,
      `CREATE MATERIALIZED VIEW IF NOT EXISTS webhooks_minute_from_webhook_events TO webhooks_minute AS
        SELECT toStartOfMinute(at) AS time, account_id, environment, webhook_id,
          countIf(type = 'requested') AS requested, countIf(type = 'succeeded') AS succeeded,
          countIf(type = 'failed') AS failed, countIf(type = 'abandoned') AS abandoned,
          quantilesTDigestStateIf(${QUANTILES})(toFloat32(webhook_events.latency_ms), type IN ('succeeded', 'failed'))
            AS latency_ms
        FROM webhook_events GROUP BY account_id, environment, webhook_id, time`,
    ],
  },
]
