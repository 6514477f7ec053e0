import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { PlanTable } from '#libs/domain/account/access.js'
import type { Engine } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { measureBacklog } from '#libs/ports/read-model/consistent-views.js'
import { measuredUsage } from '#libs/role/measured-usage.js'
import { attachmentMemory, budgetScale } from '#libs/runtime/config/memory-settings.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { countExhausted } from '#libs/runtime/fairness/budget.js'
import { errorLog } from '#libs/runtime/process/error-log.js'
import { Authenticator } from './access/authenticator.js'
import { ConsoleTokens } from './access/console-tokens.js'
import { KnownKeys, Plans } from './access/key-lookup.js'
import { RequestLimits, Throttle } from './access/request-limits.js'
import { TokenLookup } from './access/token-lookup.js'
import { OpenStreams } from './events/event-streams.js'
import { RequestBudgets } from './http/budgets.js'
import { MethodTable } from './http/method-table.js'
import { StalledReaders } from './http/stalled-readers.js'
import { Views } from './views.js'
import { Idempotency } from './idempotency/idempotency.js'
import type { Instance } from './instance.js'
import { ContentPool } from './messages/content-pool.js'
import { OpenWaits } from './messages/message-waits.js'
import { OpenedMail } from './messages/opened-mail.js'
import { apiMetrics } from './operations/api-metrics.js'
import { CountedUpTo } from './usage/counted-up-to.js'

export interface ApiOptions {
  engine: Engine
  settings: Settings
  plans: PlanTable
  now: () => Date
  logger: Logger
  registry: Registry
  /** Whether every other role has started. Until then /readyz answers 503. */
  isStarted: () => boolean
  /** The port at which mail is received. */
  smtpPort: () => number
}

export type SharedServices = ReturnType<typeof makeSharedServices>

/** Creates the services that the HTTP server and the handlers share, before Nest creates the others. */
export function makeSharedServices(options: ApiOptions) {
  const { engine, settings, plans: table, now, logger, registry, isStarted, smtpPort } = options
  const { log, inboxes, accounts, vault, signals, secrets, keyUse } = engine
  const onExhausted = countExhausted(registry)
  const instance: Instance = { now, settings, isStarted, smtpPort }
  const views = new Views(log, inboxes, accounts, vault, signals)
  const recorder = new Recorder(log, '/mayfly/api', now)
  const usage = measuredUsage({ log, source: '/mayfly/api', now, logger, registry })
  const readBacklog = async () => (await measureBacklog(log, inboxes, ['inbox-events'])).records
  const metrics = apiMetrics(registry, readBacklog)

  const plans = new Plans(table, logger)
  const knownKeys = new KnownKeys(views)
  const tokens = new TokenLookup(views, now)
  const consoleTokens = new ConsoleTokens({ secrets, keys: knownKeys, now })
  const authenticator = new Authenticator({
    ...{ keys: knownKeys, tokens, consoleTokens },
    ...{ plans, keyUse, now, settings },
  })
  const logUncounted = errorLog(logger, { outcome: 'requests pass uncounted' })
  const throttle = new Throttle({
    limits: engine.limits,
    onUnavailable: (error) => {
      metrics.rateLimitFailures.inc()
      logUncounted(error, 'counting a request')
    },
  })
  const logUnstored = errorLog(logger, { outcome: 'a repeat runs again' })
  const budgets = new RequestBudgets({ memoryScale: budgetScale(settings), onExhausted })
  const idempotency = new Idempotency(engine.idempotency, budgets, (error) => {
    metrics.unstoredAnswers.inc()
    logUnstored(error, 'storing an answer')
  })

  const stalled = new StalledReaders(settings.streamStallMs)
  const streams = new OpenStreams(settings.maxStreams, registry)
  const waits = new OpenWaits(settings.maxWaits, registry)
  const contentPool = new ContentPool({
    ...attachmentMemory(settings),
    onExhausted: () => onExhausted('attachments'),
    onThreadLost: (error) => logger.warn({ err: error }, 'a thread that read mail for answers has failed'),
  })
  const logRetried = errorLog(logger)
  const onError = (error: unknown) => logRetried(error, 'reading the ends of the log')
  /** Null if usage is not counted. */
  const countedUpTo = engine.usage && new CountedUpTo({ log, sink: engine.usage.sink, now, onError })

  return {
    ...{ instance, views, recorder, usage, metrics, plans, knownKeys, consoleTokens, authenticator },
    ...{ throttle, idempotency, budgets },
    ...{ stalled, streams, waits, contentPool, countedUpTo },
    methods: new MethodTable(),
    requestLimits: new RequestLimits(throttle, now),
    openedMail: new OpenedMail(settings.openedMailBytes),

    /** Ends streams and waits, so that their requests end. */
    endLongRequests(): void {
      streams.close()
      stalled.stop()
      waits.close()
    },

    /** Resolves once the usage recorded so far is on the log. */
    async close(): Promise<void> {
      await countedUpTo?.stop()
      await usage.close()
    },
  }
}
