import { ACCOUNT_EVENTS, type AccountEvent } from '#libs/domain/account/events.js'
import type { EventOf } from '#libs/domain/events/declare.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import type { Recorded } from './cloud-event.js'
import { accountEventCodec, inboxEventCodec, webhookEventCodec } from './codecs.js'
import type { LogAppender, Position } from './event-log.js'

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
