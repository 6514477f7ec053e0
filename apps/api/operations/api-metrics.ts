import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { beforeDeadline } from '#libs/runtime/timing.js'

/** The maximum time that a scrape waits for the backlog. */
const READ_WITHIN_MS = 2_000

/** The metrics of the API. */
export class ApiMetrics {
  readonly rateLimitFailures: Counter
  readonly unstoredAnswers: Counter
  /** Requests that were answered with a problem, by its code. */
  readonly problems: Counter<'code'>
  private readonly requestSeconds: Histogram<'method' | 'route' | 'status'>
  readonly droppedConnections: Counter

  /** `readBacklog` is called at each scrape. If it fails, the backlog is NaN. */
  constructor(registry: Registry, readBacklog: () => Promise<number>) {
    this.requestSeconds = new Histogram({
      name: 'mayfly_http_request_seconds',
      help: 'Time from reading a request to sending its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 60],
      registers: [registry],
    })
    const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] })
    this.rateLimitFailures = counter(
      'mayfly_rate_limit_failures_total',
      'Requests and password attempts that passed because they could not be counted.',
    )
    this.unstoredAnswers = counter(
      'mayfly_unkept_answers_total',
      'Answers that could not be stored for repeats of their requests. A repeat runs again, with the same ids.',
    )
    this.problems = new Counter({
      name: 'mayfly_http_problems_total',
      help: 'Requests that were answered with a problem, by its code.',
      labelNames: ['code'],
      registers: [registry],
    })
    this.droppedConnections = counter(
      'mayfly_http_dropped_connections_total',
      'Connections that were closed without an answer because their address had its share of MAYFLY_HTTP_MAX_CONNECTIONS.',
    )
    new Gauge({
      name: 'mayfly_backlog_records',
      help: 'Records on the log that the views of inboxes do not show yet.',
      registers: [registry],
      async collect() {
        this.set(await beforeDeadline(READ_WITHIN_MS, readBacklog()).catch(() => NaN))
      },
    })
  }

  observe(method: string, route: string, status: number, ms: number): void {
    this.requestSeconds.observe({ method, route, status: String(status) }, ms / 1000)
  }
}
