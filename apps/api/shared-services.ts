import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { PlanTable } from '#libs/domain/account/plan.js'
import type { Engine } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/codecs.js'
import { measureBacklog } from '#libs/ports/read-model/backlog.js'
import { measuredUsage } from '#libs/role/measured-usage.js'
import { attachmentMemory, budgetScale } from '#libs/runtime/config/memory-settings.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { countExhausted } from '#libs/runtime/fair-share/budget.js'
import { faultLog } from '#libs/runtime/process/fault-log.js'
import { Authenticator, KnownKeys } from './access/authenticator.js'
import { Plans } from './access/plans.js'
import { RequestLimits, Throttle } from './access/request-limits.js'
import { OpenStreams } from './events/open-streams.js'
import { RequestBudgets } from './http/budgets.js'
import { MethodTable } from './http/method-table.js'
import { StalledReaders } from './http/stalled-readers.js'
import { Views } from './http/views.js'
import { Idempotency } from './idempotency/idempotency.js'
import type { Instance } from './instance.js'
import { AttachmentPool } from './messages/attachment-pool.js'
import { OpenedMail } from './messages/opened-mail.js'
import { OpenWaits } from './messages/open-waits.js'
import { ApiMetrics } from './operations/api-metrics.js'
import { CountedUpTo } from './usage/counted-up-to.js'

export interface ApiOptions {
  engine: Engine
  settings: Settings
  plans: PlanTable
  now: () => Date
  logger: Logger
  registry: Registry
  /** Whether every role beside the API has started: until then /readyz answers 503. */
  isStarted: () => boolean
}

/** What the HTTP server and the handlers share: made once for each API, before Nest makes its services. */
export class SharedServices {
  readonly methods = new MethodTable()
  readonly instance: Instance
  readonly views: Views
  readonly recorder: Recorder
  readonly plans: Plans
  readonly knownKeys: KnownKeys
  readonly authenticator: Authenticator
  readonly metrics: ApiMetrics
  readonly throttle: Throttle
  readonly requestLimits: RequestLimits
  readonly idempotency: Idempotency
  readonly usage: ReturnType<typeof measuredUsage>
  readonly stalled: StalledReaders
  readonly streams: OpenStreams
  readonly waits: OpenWaits
  readonly budgets: RequestBudgets
  readonly openedMail: OpenedMail
  readonly attachments: AttachmentPool
  /** Null if no usage is counted. */
  readonly countedUpTo: CountedUpTo | null

  constructor({ engine, settings, plans, now, logger, registry }: ApiOptions) {
    const { log, inboxes, accounts, vault, signals, keyUse } = engine
    const onExhausted = countExhausted(registry)
    this.instance = { now, settings }
    this.views = new Views(log, inboxes, accounts, vault, signals)
    this.recorder = new Recorder(log, '/mayfly/api', now)
    this.usage = measuredUsage({ log, source: '/mayfly/api', now, logger, registry })
    this.metrics = new ApiMetrics(
      registry,
      async () => (await measureBacklog(log, inboxes, 'inbox-events')).records,
    )

    this.plans = new Plans(plans, logger)
    this.knownKeys = new KnownKeys(this.views)
    this.authenticator = new Authenticator({ keys: this.knownKeys, plans: this.plans, keyUse, now })
    const logUncounted = faultLog(logger, { then: 'passed uncounted' })
    this.throttle = new Throttle({
      limits: engine.limits,
      onUnavailable: (error) => {
        this.metrics.rateLimitFailures.inc()
        logUncounted(error, 'counting a request')
      },
    })
    this.requestLimits = new RequestLimits({ throttle: this.throttle, now })
    const logUnkept = faultLog(logger, { then: 'a repeat runs again' })
    this.idempotency = new Idempotency({
      store: engine.idempotency,
      onUnkept: (error) => {
        this.metrics.unkeptAnswers.inc()
        logUnkept(error, 'keeping an answer')
      },
    })

    this.budgets = new RequestBudgets({ memoryScale: budgetScale(settings), onExhausted })
    this.stalled = new StalledReaders(settings.streamStallMs)
    this.streams = new OpenStreams({ most: settings.maxStreams, stalled: this.stalled, registry })
    this.waits = new OpenWaits(settings.maxWaits, registry)
    this.openedMail = new OpenedMail(settings.openedMailBytes)
    this.attachments = new AttachmentPool({
      ...attachmentMemory(settings),
      onExhausted: () => onExhausted('attachments'),
      onThreadLost: (error) => logger.warn({ err: error }, 'a thread that read attachments was lost'),
    })
    const logRetried = faultLog(logger)
    const onError = (error: unknown) => logRetried(error, 'reading the ends of the log')
    const { usage } = engine
    this.countedUpTo = usage === null ? null : new CountedUpTo({ log, sink: usage.sink, now, onError })
  }

  /** Ends streams and waits, so that their requests end. */
  endLongRequests(): void {
    this.streams.stop()
    this.stalled.stop()
    this.waits.close()
  }

  /** Resolves once the usage recorded so far is on the log. */
  async close(): Promise<void> {
    await this.countedUpTo?.stop()
    await this.usage.close()
  }
}
