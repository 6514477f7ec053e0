import type { AddressInfo } from 'node:net'
import { Module } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, APP_PIPE, NestFactory } from '@nestjs/core'
import type { NestFastifyApplication } from '@nestjs/platform-fastify'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { attachmentMemory, budgetScale } from '#libs/runtime/config/memory-settings.js'
import { countExhausted } from '#libs/runtime/fair-share/exhausted-budgets.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { Engine } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/recorder.js'
import type { PlanTable } from '#libs/domain/account/plan.js'
import { engineName } from '#libs/runtime/process/build-info.js'
import { faultLog } from '#libs/runtime/process/fault-log.js'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { measuredUsage } from '#libs/role/measured-usage.js'
import { measureBacklog } from '#libs/ports/read-model/backlog.js'
import { movedChannel } from '#libs/ports/read-model/consistent-views.js'
import { MetricsText } from '#libs/runtime/process/metrics-text.js'
import { Authenticator } from './access/authenticator.js'
import { KnownKeys } from './access/known-keys.js'
import { Plans } from './access/plans.js'
import { RequestLimits } from './access/request-limits.js'
import { ScopeGuard } from './access/scope.guard.js'
import { Throttle } from './access/throttle.js'
import { AccountsContext } from './accounts/accounts-context.js'
import { AccountsController } from './accounts/accounts.controller.js'
import { Accounts } from './accounts/accounts.service.js'
import { EventsController } from './events/events.controller.js'
import { InboxFeed } from './events/inbox-feed.js'
import { OpenStreams } from './events/open-streams.js'
import { RequestBudgets } from './http/budgets.js'
import { StalledReaders } from './http/stalled-readers.js'
import { HistoryController } from './history/history.controller.js'
import { ContractPipe } from './http/contract-pipe.js'
import { AcceptGuard } from './http/media.js'
import { MethodGuard } from './http/method.guard.js'
import { MethodTable } from './http/method-table.js'
import { ProblemFilter } from './http/problem-filter.js'
import { makeServer } from './http/server.js'
import { Views } from './http/views.js'
import { Idempotency } from './idempotency/idempotency.js'
import { InboxContext, Inboxes } from './inboxes/inboxes.service.js'
import { InboxesController } from './inboxes/inboxes.controller.js'
import { KeysController } from './keys/keys.controller.js'
import { Keys } from './keys/keys.service.js'
import { InboxPasswords } from './inboxes/inbox-passwords.js'
import { FirstReadings } from './messages/first-readings.js'
import { AttachmentPool } from './messages/attachment-pool.js'
import { MessagePages } from './messages/message-page.js'
import { MessageReader } from './messages/message-reader.js'
import { MessageWait } from './messages/message-wait.js'
import { MessagesController } from './messages/messages.controller.js'
import { Messages } from './messages/messages.service.js'
import { OpenedMail } from './messages/opened-mail.js'
import { OpenWaits } from './messages/open-waits.js'
import { WaitController } from './messages/wait.controller.js'
import { ConsistentRead } from './messages/consistent-read.js'
import { ApiMetrics } from './operations/api-metrics.js'
import { DeliveriesController } from './webhooks/deliveries.controller.js'
import { Deliveries, DeliveriesContext } from './webhooks/deliveries.service.js'
import { InboxWebhooksController } from './webhooks/inbox-webhooks.controller.js'
import { ReplaysController } from './webhooks/replays.controller.js'
import { Replays, ReplaysContext } from './webhooks/replays.service.js'
import { WebhooksController } from './webhooks/webhooks.controller.js'
import { Webhooks, WebhooksContext } from './webhooks/webhooks.service.js'
import { ApiDocument } from './openapi/api-document.js'
import { DocsController } from './openapi/docs.controller.js'
import { UsageController } from './usage/usage.controller.js'
import { CountedUpTo } from './usage/counted-up-to.js'
import { Usage, UsageContext } from './usage/usage.service.js'
import { OperationsContext, OperationsController } from './operations/operations.controller.js'

/*
 * The API answers queries from the views, and commands once what they led to is durable on the log and shows in
 * the views. It consumes nothing.
 */

export interface ApiOptions {
  engine: Engine
  settings: Settings
  plans: PlanTable
  now: () => Date
  logger: Logger
  registry: Registry
  /** Whether every role beside the API has started: until then /readyz says no. */
  isStarted: () => boolean
}

export interface Api {
  /** The base of every path, and of links in problems. */
  url: string
  port: number
  /** Takes no more requests, answers those under way, and lets go of its resources. */
  close(): Promise<void>
}

/** After it a request that is still being sent, or whose client does not read, holds up the end no longer. */
const ANSWERED_WITHIN_MS = 10_000

/** Clients that may connect at the same moment: thousands begin to wait at once. The system may allow fewer. */
const BACKLOG = 4_096

/** Resolves once the API listens. Rejects, with the variable to look at, where it can't. */
export async function startApi({
  engine,
  settings,
  plans: planTable,
  now,
  logger,
  registry,
  isStarted,
}: ApiOptions): Promise<Api> {
  const { log, inboxes, accounts, keyUse, vault, signals, limits, idempotency: store } = engine
  const views = new Views(log, inboxes, accounts, vault, signals)
  const plans = new Plans(planTable, logger)
  const knownKeys = new KnownKeys(views)
  const authenticator = new Authenticator({ keys: knownKeys, plans, keyUse, now })
  const metrics = new ApiMetrics(
    registry,
    async () => (await measureBacklog(log, inboxes, 'inbox-events')).records,
  )
  const onExhausted = countExhausted(registry)
  const logUncounted = faultLog(logger, { then: 'passed uncounted' })
  const logUnkept = faultLog(logger, { then: 'a repeat runs again' })
  const throttle = new Throttle({
    limits,
    onUnavailable: (error) => {
      metrics.rateLimitFailures.inc()
      logUncounted(error, 'counting a request')
    },
  })
  const requestLimits = new RequestLimits({ throttle, now })
  const idempotency = new Idempotency({
    store,
    onUnkept: (error) => {
      metrics.unkeptAnswers.inc()
      logUnkept(error, 'keeping an answer')
    },
  })
  const usage = measuredUsage({ log, source: '/mayfly/api', now, logger, registry })
  const methods = new MethodTable()
  const stalled = new StalledReaders(settings.streamStallMs)
  const streams = new OpenStreams({ most: settings.maxStreams, stalled, registry })
  const waits = new OpenWaits(settings.maxWaits, registry)
  let url = settings.publicUrl ?? ''
  let isShuttingDown = false

  const recorder = new Recorder(log, '/mayfly/api', now)
  const inboxContext: InboxContext = { recorder, now, mailDomain: settings.mailDomain }
  const { maxMessageBytes } = settings
  const accountsContext: AccountsContext = { recorder, now, plans, keyUse, knownKeys, maxMessageBytes }
  const { webhooks, secrets, deliveries, replays } = engine
  const webhooksContext: WebhooksContext = { recorder, now, log, webhooks, secrets }
  const deliveriesContext: DeliveriesContext = { recorder, now, deliveries }
  const replaysContext: ReplaysContext = { recorder, now, replays }
  const logUnavailable = faultLog(logger, { then: 'answered without' })
  const logRetried = faultLog(logger)
  const onError = (error: unknown) => logRetried(error, 'reading the ends of the log')
  const sink = engine.usage?.sink ?? null
  const countedUpTo = sink === null ? null : new CountedUpTo({ log, sink, now, onError })
  const usageContext: UsageContext = {
    queries: engine.usage?.queries ?? null,
    countedUpTo: () => countedUpTo?.find() ?? Promise.resolve(null),
    now,
    stallMs: settings.streamStallMs,
    onUnavailable: (error) => logUnavailable(error, 'reading usage figures'),
  }
  const operationsContext: OperationsContext = {
    log,
    metrics: new MetricsText(registry),
    engine: engineName(settings),
    hasMetricsPort: settings.metricsPort !== null,
    isStarted,
  }

  const controllers = [
    InboxesController,
    WaitController,
    MessagesController,
    AccountsController,
    KeysController,
    HistoryController,
    EventsController,
    InboxWebhooksController,
    WebhooksController,
    DeliveriesController,
    ReplaysController,
    UsageController,
    OperationsController,
    DocsController,
  ]

  const budgets = new RequestBudgets({ memoryScale: budgetScale(settings), onExhausted })
  @Module({
    controllers,
    providers: [
      { provide: APP_PIPE, useClass: ContractPipe },
      { provide: APP_GUARD, useValue: new MethodGuard(methods) },
      { provide: APP_GUARD, useClass: AcceptGuard },
      { provide: APP_GUARD, useClass: ScopeGuard },
      { provide: APP_FILTER, useValue: new ProblemFilter(() => url, methods) },
      { provide: Views, useValue: views },
      { provide: Throttle, useValue: throttle },
      { provide: InboxContext, useValue: inboxContext },
      { provide: AccountsContext, useValue: accountsContext },
      { provide: WebhooksContext, useValue: webhooksContext },
      { provide: OperationsContext, useValue: operationsContext },
      { provide: ApiDocument, useValue: new ApiDocument(controllers, () => url) },
      { provide: RequestBudgets, useValue: budgets },
      Accounts,
      Keys,
      { provide: UsageContext, useValue: usageContext },
      Usage,
      { provide: FirstReadings, useValue: new FirstReadings(usage, now) },
      Webhooks,
      { provide: DeliveriesContext, useValue: deliveriesContext },
      Deliveries,
      { provide: ReplaysContext, useValue: replaysContext },
      Replays,
      { provide: OpenStreams, useValue: streams },
      { provide: Authenticator, useValue: authenticator },
      InboxFeed,
      Inboxes,
      { provide: InboxPasswords, useValue: new InboxPasswords(throttle) },
      Messages,
      MessagePages,
      MessageReader,
      MessageWait,
      ConsistentRead,
      { provide: OpenWaits, useValue: waits },
      { provide: OpenedMail, useValue: new OpenedMail(settings.openedMailBytes) },
      {
        provide: AttachmentPool,
        useValue: new AttachmentPool({
          ...attachmentMemory(settings),
          onExhausted: () => onExhausted('attachments'),
          onThreadLost: (error) => logger.warn({ err: error }, 'a thread that read attachments was lost'),
        }),
      },
    ],
  })
  class ApiModule {}

  const server = makeServer({
    settings,
    logger,
    metrics,
    usage,
    now,
    methods,
    isShuttingDown: () => isShuttingDown,
    publicUrl: () => url,
    authenticate: (request) => authenticator.authenticate(request),
    limit: (request, reply) => requestLimits.count(request, reply),
    idempotency,
    budgets,
    stalled,
  })
  const app = await NestFactory.create<NestFastifyApplication>(ApiModule, server, {
    logger: false,
    bodyParser: false,
    abortOnError: false,
  })
  let stopListening: () => void = () => undefined
  try {
    stopListening = await signals.subscribe(movedChannel({ topic: 'account-events', partition: 0 }), () =>
      knownKeys.forgetAll(),
    )
    await app
      .listen({ port: settings.httpPort, host: settings.httpHost, backlog: BACKLOG })
      .catch((error: unknown) => {
        throw listenError(error, { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_HTTP_PORT' })
      })
    const { port } = app.getHttpServer().address() as AddressInfo
    countedUpTo?.start()
    logger.debug({ routes: methods.routes }, 'taking requests')
    if (url === '') url = `http://${urlHost(settings.httpHost)}:${port}`
    return {
      url,
      port,
      async close() {
        isShuttingDown = true
        stopListening()
        streams.stop()
        stalled.stop()
        waits.close()
        const server = app.getHttpServer()
        const timer = setTimeout(() => server.closeAllConnections(), ANSWERED_WITHIN_MS)
        await app.close()
        clearTimeout(timer)
        await countedUpTo?.stop()
        await usage.close()
      },
    }
  } catch (error) {
    stopListening()
    await app.close()
    await usage.close()
    throw error
  }
}

/** A host as it stands in a URL: IPv6 in brackets (RFC 3986, section 3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
