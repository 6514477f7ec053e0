import { Module, type DynamicModule, type Provider } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, APP_PIPE } from '@nestjs/core'
import { ActivityController } from './activity/activity.controller.js'
import { AuditController } from './audit/audit.controller.js'
import { AuditLogs } from './audit/audit-logs.service.js'
import { ErasuresController } from './audit/erasures.controller.js'
import { PastStates } from './audit/past-states.service.js'
import { TilesController } from './audit/tiles.controller.js'
import { ScopeGuard } from './access/principal.js'
import { AccountCommands } from './accounts/account-commands.js'
import { AccountsController } from './accounts/accounts.controller.js'
import { Accounts } from './accounts/accounts.service.js'
import { ConsoleSessions } from './console/console-sessions.service.js'
import { ConsoleController, ConsoleLinksController } from './console/console.controller.js'
import { RenderController } from './console/render.controller.js'
import { DomainsController } from './domains/domains.controller.js'
import { Domains } from './domains/domains.service.js'
import { EventData } from './events/event-data.js'
import { EventStreams } from './events/event-streams.js'
import { EnvironmentEventsController, EventsController } from './events/events.controller.js'
import { HistoryController } from './history/history.controller.js'
import { LinesAnswer } from './http/lines-answer.js'
import { MethodGuard } from './http/method-table.js'
import { AcceptGuard } from './http/media-types.js'
import { ContractPipe, UndeclaredInputGuard } from './http/validation.js'
import { VisibleRecorder } from './visible-recorder.js'
import { BulkInboxesController } from './inboxes/bulk-inboxes.controller.js'
import { ChosenAddresses } from './inboxes/chosen-addresses.js'
import { InboxPasswords } from './inboxes/inbox-passwords.js'
import { InboxesController } from './inboxes/inboxes.controller.js'
import { Inboxes } from './inboxes/inboxes.service.js'
import { ENGINE, Instance } from './instance.js'
import { KeysController } from './keys/keys.controller.js'
import { Keys } from './keys/keys.service.js'
import { InvitationsController, MembersController } from './members/members.controller.js'
import { Members } from './members/members.service.js'
import { MailpitController } from './mailpit/mailpit.controller.js'
import { Mailbox } from './mailpit/mailbox.js'
import { EnvironmentMail } from './messages/environment-mail.js'
import { EnvironmentMessagesController } from './messages/environment-messages.controller.js'
import { InboxMail } from './messages/inbox-mail.js'
import { InjectController } from './messages/inject.controller.js'
import { MessageChecksController } from './messages/message-checks.controller.js'
import { MessageContent } from './messages/message-content.js'
import { MessagePages } from './messages/message-pages.js'
import { MessageReader } from './messages/message-reader.js'
import { MessagesController } from './messages/messages.controller.js'
import { LabelCounts } from './messages/label-count.js'
import { MessageWaits } from './messages/message-waits.js'
import { ApiDocument } from './openapi/document.js'
import { OperationsController } from './operations/operations.controller.js'
import { PublicInboxesController } from './public-inboxes/public-inboxes.controller.js'
import { QuotaUse } from './quotas/quota-use.js'
import { QuotasController } from './quotas/quotas.controller.js'
import { RefusedMailController } from './refused-mail/refused-mail.controller.js'
import type { ApiOptions, SharedServices } from './shared-services.js'
import { DefaultFaultsController, FaultsController } from './faults/faults.controller.js'
import { RunMail } from './runs/run-mail.js'
import { VerifyRunController } from './runs/verify-run.controller.js'
import { ProviderSignInController } from './sign-in/provider-sign-in.controller.js'
import { ProviderSignIn } from './sign-in/provider-sign-in.service.js'
import { TokensController } from './tokens/tokens.controller.js'
import { InboxTokens } from './tokens/tokens.service.js'
import { UsageController } from './usage/usage.controller.js'
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
  MessageChecksController,
  InjectController,
  EnvironmentMessagesController,
  RefusedMailController,
  VerifyRunController,
  AccountsController,
  QuotasController,
  ActivityController,
  AuditController,
  ErasuresController,
  KeysController,
  DomainsController,
  HistoryController,
  EventsController,
  EnvironmentEventsController,
  TokensController,
  FaultsController,
  DefaultFaultsController,
  InboxWebhooksController,
  MembersController,
  InvitationsController,
  WebhooksController,
  DeliveriesController,
  ReplaysController,
  UsageController,
  OperationsController,
]

const SERVICES = [
  ...[
    VisibleRecorder,
    LinesAnswer,
    InboxPasswords,
    Inboxes,
    ChosenAddresses,
    InboxTokens,
    MessagePages,
    MessageWaits,
  ],
  ...[LabelCounts, InboxMail, EnvironmentMail, RunMail, MessageReader, MessageContent, Mailbox],
  ...[
    EventData,
    EventStreams,
    AccountCommands,
    Accounts,
    Keys,
    Domains,
    Members,
    QuotaUse,
    Webhooks,
    Deliveries,
    ConsoleSessions,
    ProviderSignIn,
    AuditLogs,
    PastStates,
  ],
]

@Module({})
class ApiModule {}

/** The controllers and services of the API. `publicUrl` is the base of links. */
export function apiModule(
  { engine, settings }: ApiOptions,
  { instance, methods, problems, injected }: SharedServices,
  publicUrl: () => string,
): DynamicModule {
  const contract = new ContractPipe()
  const documented = settings.publicInbox ? [...CONTROLLERS, PublicInboxesController] : CONTROLLERS
  const providers: Provider[] = [
    { provide: APP_GUARD, useValue: new MethodGuard(methods) },
    { provide: APP_GUARD, useClass: AcceptGuard },
    { provide: APP_GUARD, useClass: ScopeGuard },
    { provide: APP_GUARD, useValue: new UndeclaredInputGuard(contract) },
    { provide: APP_PIPE, useValue: contract },
    { provide: APP_FILTER, useValue: problems },
    { provide: ENGINE, useValue: engine },
    { provide: Instance, useValue: instance },
    { provide: ApiDocument, useValue: new ApiDocument(documented, publicUrl) },
    ...injected.map((service) => ({ provide: service.constructor, useValue: service })),
    ...SERVICES,
  ]
  return {
    module: ApiModule,
    // The OpenAPI document is the contract of /v1. It does not have the routes of pages and tiles, nor Mailpit's API.
    controllers: [
      ...documented,
      ...[
        ConsoleLinksController,
        ConsoleController,
        ProviderSignInController,
        RenderController,
        TilesController,
      ],
      ...(settings.mailpitApi ? [MailpitController] : []),
    ],
    providers,
  }
}
