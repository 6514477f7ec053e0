import { ACCOUNT_EVENTS, type AccountEvent } from '#libs/domain/account/events.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { INBOX_KEY_EVENTS, type InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { USAGE_EVENTS, type UsageEvent } from '#libs/domain/usage/usage-events.js'
import { WEBHOOK_EVENTS, type WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import type { EventOf } from '#libs/domain/events/declare.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { EventCodec, OccurrenceCodec, type Recorded } from './cloud-event.js'
import type { LogTopic } from './topics.js'
import type { LogAppender, Position } from './event-log.js'

export const inboxEventCodec = new EventCodec<InboxEvent>(INBOX_EVENTS, ({ inboxId }) => inboxId)
export const accountEventCodec = new EventCodec<AccountEvent>(ACCOUNT_EVENTS, ({ accountId }) => accountId)
export const webhookEventCodec = new EventCodec<WebhookEvent>(WEBHOOK_EVENTS, ({ webhookId }) => webhookId)
export const usageEventCodec = new EventCodec<UsageEvent>(USAGE_EVENTS, ({ keyId }) => keyId)
export const inboxKeyEventCodec = new OccurrenceCodec<InboxKeyEvent>(INBOX_KEY_EVENTS, subjectOf)

/** Key of the records that say which master key serves new inboxes. */
export const MASTER_KEY_SUBJECT = 'master-key'

function subjectOf(event: InboxKeyEvent): string {
  switch (event.type) {
    case 'InboxKeyWrapped':
    case 'InboxKeyForgotten':
      return event.inboxId
    case 'MasterKeyTaken':
      return MASTER_KEY_SUBJECT
    case 'KeysHeartbeat':
      return event.pulse
  }
}

/** How the events of each topic are written and read. */
export const CODECS = {
  'inbox-events': inboxEventCodec,
  'account-events': accountEventCodec,
  'webhook-events': webhookEventCodec,
  'usage-events': usageEventCodec,
  'inbox-keys': inboxKeyEventCodec,
} as const satisfies Record<LogTopic, object>

/** Whom an event concerns and who caused it. */
export type Attribution = Pick<Recorded<unknown>, 'accountId' | 'environment' | 'keyId'>

export type DomainEvent = InboxEvent | AccountEvent | WebhookEvent

/** Appends domain events to the log on behalf of one role. */
export class Recorder {
  constructor(
    private readonly log: LogAppender,
    private readonly source:
      '/mayfly/api' | '/mayfly/smtp' | '/mayfly/lifecycle' | '/mayfly/webhooks' | '/mayfly/cli',
    private readonly now: () => Date,
  ) {}

  /** Resolves with the event's position once it is durable. Rejects as `EventLog.append` does. */
  record(event: DomainEvent, { accountId, environment, keyId }: Attribution): Promise<Position> {
    const by = { id: mintId('evt'), time: this.now(), source: this.source, accountId, environment, keyId }
    if (isOneOf(INBOX_EVENTS, event)) {
      return this.log.append('inbox-events', inboxEventCodec.encode({ ...by, event }))
    }
    if (isOneOf(ACCOUNT_EVENTS, event)) {
      return this.log.append('account-events', accountEventCodec.encode({ ...by, event }))
    }
    return this.log.append('webhook-events', webhookEventCodec.encode({ ...by, event }))
  }
}

function isOneOf<Declarations extends object>(
  declarations: Declarations,
  event: DomainEvent,
): event is DomainEvent & EventOf<Declarations> {
  return Object.hasOwn(declarations, event.type)
}
