import type { Registry } from 'prom-client'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { beforeDeadline } from '#libs/runtime/timing.js'

/** The maximum time that a scrape waits for the backlog. */
const READ_WITHIN_MS = 2_000

/** The metrics of the API. `readBacklog` is called at each scrape. */
export function apiMetrics(registry: Registry, readBacklog: () => Promise<number>) {
  const make = new Metrics(registry)
  make.gauge('mayfly_backlog_records', 'Records on the log that the views of inboxes do not show yet.', () =>
    beforeDeadline(READ_WITHIN_MS, readBacklog()),
  )
  return {
    requestSeconds: make.histogram(
      'mayfly_http_request_seconds',
      'Time from reading a request to sending its answer.',
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 60],
      ['method', 'route', 'status'],
    ),
    rateLimitFailures: make.counter(
      'mayfly_rate_limit_failures_total',
      'Requests and password attempts that passed because they could not be counted.',
    ),
    unstoredAnswers: make.counter(
      'mayfly_unkept_answers_total',
      'Answers that could not be stored for repeats of their requests. A repeat runs again, with the same ids.',
    ),
    problems: make.counter(
      'mayfly_http_problems_total',
      'Requests that were answered with a problem, by its code.',
      ['code'],
    ),
    droppedConnections: make.counter(
      'mayfly_http_dropped_connections_total',
      'Connections that were closed without an answer because their address had its share of MAYFLY_HTTP_MAX_CONNECTIONS.',
    ),
  }
}

export type ApiMetrics = ReturnType<typeof apiMetrics>
