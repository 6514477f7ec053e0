import type { AddressInfo } from 'node:net'
import { Module } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, APP_PIPE, NestFactory } from '@nestjs/core'
import type { NestFastifyApplication } from '@nestjs/platform-fastify'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Settings } from '#libs/config/settings.js'
import type { Engine } from '#libs/engine/engine.js'
import { Recorder } from '#libs/event-log/recorder.js'
import { faultLog } from '#libs/process/fault-log.js'
import { listenError } from '#libs/process/listen-error.js'
import { measureBacklog } from '#libs/read-model/backlog.js'
import { Authenticator } from './access/authenticator.js'
import { RequestLimits } from './access/request-limits.js'
import { ScopeGuard } from './access/scope.guard.js'
import { Throttle } from './access/throttle.js'
import { ContractPipe } from './http/contract-pipe.js'
import { AcceptGuard } from './http/media.js'
import { MethodTable } from './http/method-table.js'
import { ProblemFilter } from './http/problem-filter.js'
import { makeServer } from './http/server.js'
import { Views } from './http/views.js'
import { InboxContext, Inboxes } from './inboxes/inboxes.service.js'
import { InboxesController } from './inboxes/inboxes.controller.js'
import { InboxPasswords } from './inboxes/inbox-passwords.js'
import { AttachmentPool } from './messages/attachment-pool.js'
import { MessagePages } from './messages/message-page.js'
import { MessageReader } from './messages/message-reader.js'
import { MessageWait } from './messages/message-wait.js'
import { MessagesController } from './messages/messages.controller.js'
import { Messages } from './messages/messages.service.js'
import { OpenedMail } from './messages/opened-mail.js'
import { OpenWaits } from './messages/open-waits.js'
import { WaitController } from './messages/wait.controller.js'
import { WholeLook } from './messages/whole-look.js'
import { ApiMetrics } from './operations/api-metrics.js'
import { OperationsContext, OperationsController } from './operations/operations.controller.js'

/*
 * The API answers queries from the views, and commands once what they led to is durable on the log and shows in
 * the views. It consumes nothing.
 */

export interface ApiOptions {
  engine: Engine
  settings: Settings
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
  now,
  logger,
  registry,
  isStarted,
}: ApiOptions): Promise<Api> {
  const { log, inboxes, accounts, vault, signals, limits } = engine
  const views = new Views(log, inboxes, accounts, vault, signals)
  const authenticator = new Authenticator(views)
  const metrics = new ApiMetrics(
    registry,
    async () => (await measureBacklog(log, inboxes, 'inbox-events')).records,
  )
  const logFault = faultLog(logger, { then: 'passed uncounted' })
  const throttle = new Throttle({
    limits,
    onUnavailable: (error) => {
      metrics.rateLimitFailures.inc()
      logFault(error, 'counting a request')
    },
  })
  const requestLimits = new RequestLimits({ throttle, now })
  const methods = new MethodTable()
  const waits = new OpenWaits(settings.maxWaits, registry)
  let url = settings.publicUrl ?? ''
  let isShuttingDown = false

  const inboxContext: InboxContext = {
    recorder: new Recorder(log, '/mayfly/api', now),
    now,
    mailDomain: settings.mailDomain,
  }
  const operationsContext: OperationsContext = {
    log,
    registry,
    hasMetricsPort: settings.metricsPort !== null,
    isStarted,
  }

  @Module({
    controllers: [InboxesController, WaitController, MessagesController, OperationsController],
    providers: [
      { provide: APP_PIPE, useClass: ContractPipe },
      { provide: APP_GUARD, useClass: AcceptGuard },
      { provide: APP_GUARD, useClass: ScopeGuard },
      { provide: APP_FILTER, useValue: new ProblemFilter(() => url, methods) },
      { provide: Views, useValue: views },
      { provide: Throttle, useValue: throttle },
      { provide: InboxContext, useValue: inboxContext },
      { provide: OperationsContext, useValue: operationsContext },
      Inboxes,
      { provide: InboxPasswords, useValue: new InboxPasswords(engine.limits) },
      Messages,
      MessagePages,
      MessageReader,
      MessageWait,
      WholeLook,
      { provide: OpenWaits, useValue: waits },
      { provide: OpenedMail, useValue: new OpenedMail(settings.openedMailBytes) },
      {
        provide: AttachmentPool,
        useValue: new AttachmentPool((error) =>
          logger.warn({ err: error }, 'a thread that read attachments was lost'),
        ),
      },
    ],
  })
  class ApiModule {}

  const server = makeServer({
    settings,
    logger,
    metrics,
    methods,
    isShuttingDown: () => isShuttingDown,
    publicUrl: () => url,
    authenticate: (request) => authenticator.authenticate(request),
    limit: (request, reply) => requestLimits.count(request, reply),
  })
  const app = await NestFactory.create<NestFastifyApplication>(ApiModule, server, {
    logger: false,
    bodyParser: false,
    abortOnError: false,
  })
  try {
    await app
      .listen({ port: settings.httpPort, host: settings.httpHost, backlog: BACKLOG })
      .catch((error: unknown) => {
        throw listenError(error, { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_HTTP_PORT' })
      })
    const { port } = app.getHttpServer().address() as AddressInfo
    if (url === '') url = `http://${urlHost(settings.httpHost)}:${port}`
    return {
      url,
      port,
      async close() {
        isShuttingDown = true
        waits.close()
        const server = app.getHttpServer()
        const timer = setTimeout(() => server.closeAllConnections(), ANSWERED_WITHIN_MS)
        await app.close()
        clearTimeout(timer)
      },
    }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** A host as it stands in a URL: IPv6 in brackets (RFC 3986, section 3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
