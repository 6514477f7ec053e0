import type { PlanTable } from '#libs/domain/account/access.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { measureBacklog } from '#libs/ports/read-model/consistent-views.js'
import { AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import { measuredUsage } from '#libs/role/measured-usage.js'
import { RecipientDomains } from '#libs/role/recipient-domains.js'
import { RefusedMailList } from '#libs/role/refused-mail.js'
import type { EngineContext } from '#libs/role/run-role.js'
import { attachmentMemory, budgetScale } from '#libs/runtime/config/memory-settings.js'
import { readProviders } from '#libs/runtime/config/providers-file.js'
import { countExhausted } from '#libs/runtime/fairness/budget.js'
import { Turns } from '#libs/runtime/fairness/turns.js'
import { errorLog } from '#libs/runtime/process/error-log.js'
import { MetricsText } from '#libs/runtime/process/metrics.js'
import { Authenticator } from './access/authenticator.js'
import { ConsoleTokens } from './access/console-tokens.js'
import { KnownKeys, Plans } from './access/key-lookup.js'
import { RequestLimits, Throttle } from './access/request-limits.js'
import { ConsoleAddress } from './console/console-address.js'
import { RenderTickets } from './console/render-tickets.js'
import { OpenStreams } from './events/event-streams.js'
import { RequestBudgets } from './http/budgets.js'
import { MethodTable } from './http/method-table.js'
import { currentOrigin } from './http/request-origin.js'
import { ProblemFilter } from './http/problem-filter.js'
import { StalledReaders } from './http/stalled-readers.js'
import { Views } from './views.js'
import { Idempotency } from './idempotency/idempotency.js'
import type { Instance } from './instance.js'
import { ContentPool } from './messages/content-pool.js'
import { LinkChecks } from './messages/link-checks.js'
import { FirstReadings } from './messages/message-reader.js'
import { InvitationMail } from './members/invitation-mail.js'
import { OpenWaits } from './messages/message-waits.js'
import { OpenedMail } from './messages/opened-mail.js'
import { apiMetrics } from './operations/api-metrics.js'
import { IdentityProviders } from './sign-in/identity-providers.js'
import { CountedUpTo } from './usage/counted-up-to.js'
import { Usage } from './usage/usage.service.js'

export interface ApiOptions extends Omit<EngineContext, 'running'> {
  plans: PlanTable
  /** Whether every other role has started. Until then /readyz answers 503. */
  isStarted: () => boolean
  smtpPort: () => number
}

export type SharedServices = ReturnType<typeof makeSharedServices>

/** Creates the services that Nest can't create, or that the HTTP server needs too. `publicUrl` is the base of links. */
export function makeSharedServices(options: ApiOptions, publicUrl: () => string) {
  const { engine, settings, plans: table, now, logger, registry, isStarted, smtpPort } = options
  const { log, inboxes, accounts, vault, signals, secrets, keyUse, limits } = engine
  const onExhausted = countExhausted(registry)
  const instance: Instance = { now, settings, isStarted, smtpPort }
  const { maxMessageBytes } = settings
  const views = new Views(log, inboxes, accounts, vault, signals)
  const logPersonal = errorLog(logger)
  const personal = new PersonalData({
    ...{ vault, keys: secrets },
    onError: (error) => logPersonal(error, 'sealing or opening personal data'),
  })
  const recorder = new Recorder(log, '/mayfly/api', now, (owner) => currentOrigin(personal, owner))
  const usage = measuredUsage({ log, source: '/mayfly/api', now, logger, registry })
  const readBacklog = async () => (await measureBacklog(log, inboxes, ['inbox-events'])).records
  const metrics = apiMetrics(registry, readBacklog)

  const plans = new Plans(table, logger)
  const knownKeys = new KnownKeys(views, now)
  const consoleTokens = new ConsoleTokens(secrets, now)
  const authenticator = new Authenticator({
    ...{ keys: knownKeys, views, consoleTokens },
    ...{ plans, keyUse, now, settings },
  })
  const logUncounted = errorLog(logger, { outcome: 'requests pass uncounted' })
  const throttle = new Throttle(limits, (error) => {
    metrics.rateLimitFailures.inc()
    logUncounted(error, 'counting a request')
  })
  const logUnstored = errorLog(logger, { outcome: 'a repeat runs again' })
  const budgets = new RequestBudgets({ memoryScale: budgetScale(settings), onExhausted })
  const idempotency = new Idempotency(engine.idempotency, budgets, (error) => {
    metrics.unstoredAnswers.inc()
    logUnstored(error, 'storing an answer')
  })

  const logUnmailed = errorLog(logger, { outcome: 'the link is only in the answer' })
  const stalled = new StalledReaders(settings.streamStallMs)
  const longRequests = { signals, turns: new Turns(), authenticator, registry }
  const streams = new OpenStreams(settings.maxStreams, longRequests)
  const waits = new OpenWaits(settings.maxWaits, longRequests)
  const contentPool = new ContentPool({
    ...attachmentMemory(settings),
    onExhausted: () => onExhausted('attachments'),
    onThreadLost: (error) => logger.warn({ err: error }, 'a thread that read mail for answers has failed'),
  })
  const linkChecks = new LinkChecks({
    allowPrivate: settings.webhookAllowPrivate,
    ports: settings.webhookPorts,
    dnsServers: settings.dnsServers,
    onExhausted: () => onExhausted('link-checks'),
  })
  const logRetried = errorLog(logger)
  const onError = (error: unknown) => logRetried(error, 'reading the ends of the log')
  /** Null if usage is not counted. */
  const countedUpTo = engine.usage && new CountedUpTo({ log, sink: engine.usage.sink, now, onError })

  const logUnavailable = errorLog(logger, { outcome: 'answered without usage' })
  const figures = new Usage(
    {
      ...{ queries: engine.usage?.queries ?? null, countedUpTo, accounts },
      onUnavailable: (error) => logUnavailable(error, 'reading usage figures'),
    },
    instance,
  )
  const refusedMail = new RefusedMailList()
  const methods = new MethodTable()
  const problems = new ProblemFilter(publicUrl, methods, settings)
  const requestLimits = new RequestLimits(throttle, now)
  return {
    ...{ instance, views, usage, metrics, knownKeys, authenticator, requestLimits },
    ...{ idempotency, budgets, stalled, countedUpTo, refusedMail, methods, problems },

    /** Nest injects each by its class. */
    injected: [
      ...[views, recorder, plans, knownKeys, keyUse, authenticator, consoleTokens, throttle, requestLimits],
      new AccountQuotas({ log, views, inboxes, accounts, plans: table, maxMessageBytes, now }),
      ...[budgets, streams, stalled, waits, contentPool, linkChecks, problems, figures, refusedMail],
      new RecipientDomains({ log, accounts, views, settings }),
      new OpenedMail(settings.openedMailBytes),
      new ConsoleAddress(publicUrl, settings.publicUrl !== null),
      new IdentityProviders(readProviders(settings.providersFile), now, logger),
      new InvitationMail(settings, throttle, (error) => logUnmailed(error, 'mailing an invitation')),
      new RenderTickets(secrets, throttle, now),
      personal,
      new FirstReadings(usage, now),
      new MetricsText(registry),
    ],

    /** Ends streams, waits and checks of links, so that their requests end. */
    endLongRequests(): void {
      streams.close()
      stalled.stop()
      waits.close()
      linkChecks.close()
    },

    /** Resolves once the usage recorded so far is on the log. */
    async close(): Promise<void> {
      await countedUpTo?.sampling.stop()
      await usage.close()
    },
  }
}
