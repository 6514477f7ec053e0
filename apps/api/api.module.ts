import { Module, type DynamicModule, type Provider } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, APP_PIPE } from '@nestjs/core'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { KeyUse } from '#libs/ports/key-use/key-use.js'
import { errorLog } from '#libs/runtime/process/error-log.js'
import { MetricsText } from '#libs/runtime/process/metrics.js'
import { Authenticator } from './access/authenticator.js'
import { ScopeGuard } from './access/principal.js'
import { ConsoleTokens } from './access/console-tokens.js'
import { KnownKeys, Plans } from './access/key-lookup.js'
import { RequestLimits, Throttle } from './access/request-limits.js'
import { AccountCommands } from './accounts/account-commands.js'
import { AccountsController } from './accounts/accounts.controller.js'
import { Accounts } from './accounts/accounts.service.js'
import { ConsoleAddress } from './console/console-address.js'
import { ConsoleSessions } from './console/console-sessions.service.js'
import { ConsoleController, ConsoleLinksController } from './console/console.controller.js'
import { RenderController } from './console/render.controller.js'
import { RenderTickets } from './console/render-tickets.js'
import { EventData } from './events/event-data.js'
import { EventStreams, OpenStreams } from './events/event-streams.js'
import { EnvironmentEventsController, EventsController } from './events/events.controller.js'
import { HistoryController } from './history/history.controller.js'
import { RequestBudgets } from './http/budgets.js'
import { LinesAnswer } from './http/lines-answer.js'
import { MethodGuard } from './http/method-table.js'
import { ProblemFilter } from './http/problem-filter.js'
import { StalledReaders } from './http/stalled-readers.js'
import { AcceptGuard } from './http/media-types.js'
import { ContractPipe, UndeclaredInputGuard } from './http/validation.js'
import { Views } from './views.js'
import { VisibleRecorder } from './visible-recorder.js'
import { BulkInboxesController } from './inboxes/bulk-inboxes.controller.js'
import { InboxPasswords } from './inboxes/inbox-passwords.js'
import { InboxesController } from './inboxes/inboxes.controller.js'
import { Inboxes } from './inboxes/inboxes.service.js'
import { ENGINE, Instance } from './instance.js'
import { KeysController } from './keys/keys.controller.js'
import { Keys } from './keys/keys.service.js'
import { ContentPool } from './messages/content-pool.js'
import { MailpitController } from './mailpit/mailpit.controller.js'
import { Mailbox } from './mailpit/mailbox.js'
import { EnvironmentMail } from './messages/environment-mail.js'
import { EnvironmentMessagesController } from './messages/environment-messages.controller.js'
import { InboxMail } from './messages/inbox-mail.js'
import { InjectController } from './messages/inject.controller.js'
import { MessageContent } from './messages/message-content.js'
import { MessagePages } from './messages/message-pages.js'
import { MessageReader, FirstReadings } from './messages/message-reader.js'
import { MessagesController } from './messages/messages.controller.js'
import { LabelCounts } from './messages/label-count.js'
import { MessageWaits, OpenWaits } from './messages/message-waits.js'
import { OpenedMail } from './messages/opened-mail.js'
import { ApiDocument, DocsController } from './openapi/docs.controller.js'
import { OperationsController } from './operations/operations.controller.js'
import { PublicInboxesController } from './public-inboxes/public-inboxes.controller.js'
import type { ApiOptions, SharedServices } from './shared-services.js'
import { DefaultFaultsController, FaultsController } from './faults/faults.controller.js'
import { RunMail } from './runs/run-mail.js'
import { VerifyRunController } from './runs/verify-run.controller.js'
import { TokensController } from './tokens/tokens.controller.js'
import { InboxTokens } from './tokens/tokens.service.js'
import { UsageController } from './usage/usage.controller.js'
import { Usage, type UsagePorts } from './usage/usage.service.js'
import { DeliveriesController } from './webhooks/deliveries.controller.js'
import { Deliveries } from './webhooks/deliveries.service.js'
import { ReplaysController } from './webhooks/replays.controller.js'
import { WebhooksController, InboxWebhooksController } from './webhooks/webhooks.controller.js'
import { Webhooks } from './webhooks/webhooks.service.js'

/** In the order of the OpenAPI document. */
export const CONTROLLERS = [
  InboxesController,
  BulkInboxesController,
  MessagesController,
  InjectController,
  EnvironmentMessagesController,
  VerifyRunController,
  AccountsController,
  KeysController,
  HistoryController,
  EventsController,
  EnvironmentEventsController,
  TokensController,
  FaultsController,
  DefaultFaultsController,
  InboxWebhooksController,
  WebhooksController,
  DeliveriesController,
  ReplaysController,
  UsageController,
  OperationsController,
  DocsController,
]

/** Created by Nest. */
const SERVICES = [
  VisibleRecorder,
  LinesAnswer,
  Inboxes,
  InboxTokens,
  ...[
    MessagePages,
    MessageWaits,
    LabelCounts,
    InboxMail,
    EnvironmentMail,
    RunMail,
    MessageReader,
    MessageContent,
    Mailbox,
    EventData,
    EventStreams,
  ],
  ...[AccountCommands, Accounts, Keys],
  ...[Webhooks, Deliveries],
  ConsoleSessions,
]

/** An export of usage has the names of the newest keys, because each is a parameter of its query. */
const MAX_NAMED_KEYS = 1_000

@Module({})
class ApiModule {}

/** The controllers and services of the API. `publicUrl` is the base of links. */
export function apiModule(
  { engine, settings, now, logger, registry }: ApiOptions,
  shared: SharedServices,
  publicUrl: () => string,
): DynamicModule {
  const logUnavailable = errorLog(logger, { outcome: 'answered without usage' })
  const usagePorts: UsagePorts = {
    queries: engine.usage?.queries ?? null,
    countedUpTo: () => shared.countedUpTo?.find() ?? Promise.resolve(null),
    keyNames: async (accountId) => {
      const newest = { order: 'desc', after: null, limit: MAX_NAMED_KEYS } as const
      const keys = await engine.accounts.listKeys(accountId, newest)
      return new Map(keys.map(({ id, name }) => [id, name]))
    },
    onUnavailable: (error) => logUnavailable(error, 'reading usage figures'),
  }
  const problems = new ProblemFilter(publicUrl, shared.methods, settings)
  const created: Provider[] = [
    { provide: Instance, useValue: shared.instance },
    { provide: Views, useValue: shared.views },
    { provide: Recorder, useValue: shared.recorder },
    { provide: Plans, useValue: shared.plans },
    { provide: KnownKeys, useValue: shared.knownKeys },
    { provide: KeyUse, useValue: engine.keyUse },
    { provide: Authenticator, useValue: shared.authenticator },
    { provide: ConsoleTokens, useValue: shared.consoleTokens },
    { provide: ConsoleAddress, useValue: new ConsoleAddress(publicUrl, settings.publicUrl !== null) },
    { provide: Throttle, useValue: shared.throttle },
    { provide: RequestLimits, useValue: shared.requestLimits },
    { provide: InboxPasswords, useValue: new InboxPasswords(shared.throttle) },
    { provide: RequestBudgets, useValue: shared.budgets },
    { provide: OpenStreams, useValue: shared.streams },
    { provide: StalledReaders, useValue: shared.stalled },
    { provide: OpenWaits, useValue: shared.waits },
    { provide: OpenedMail, useValue: shared.openedMail },
    { provide: ContentPool, useValue: shared.contentPool },
    { provide: RenderTickets, useValue: new RenderTickets(engine.secrets, engine.limits, now) },
    { provide: ProblemFilter, useValue: problems },
    { provide: FirstReadings, useValue: new FirstReadings(shared.usage, now) },
    { provide: ENGINE, useValue: engine },
    { provide: MetricsText, useValue: new MetricsText(registry) },
    { provide: Usage, useValue: new Usage(usagePorts, shared.instance) },
    { provide: ApiDocument, useValue: new ApiDocument(CONTROLLERS, publicUrl) },
  ]
  const contract = new ContractPipe()
  const everyRequest: Provider[] = [
    { provide: APP_GUARD, useValue: new MethodGuard(shared.methods) },
    { provide: APP_GUARD, useClass: AcceptGuard },
    { provide: APP_GUARD, useClass: ScopeGuard },
    { provide: APP_GUARD, useValue: new UndeclaredInputGuard(contract) },
    { provide: APP_PIPE, useValue: contract },
    { provide: APP_FILTER, useValue: problems },
  ]
  return {
    module: ApiModule,
    // The OpenAPI document is the contract of /v1. It does not have the routes of pages, nor Mailpit's API.
    controllers: [
      ...CONTROLLERS,
      ...[ConsoleLinksController, ConsoleController, RenderController],
      ...(settings.mailpitApi ? [MailpitController] : []),
      ...(settings.publicInbox ? [PublicInboxesController] : []),
    ],
    providers: [...everyRequest, ...created, ...SERVICES],
  }
}
