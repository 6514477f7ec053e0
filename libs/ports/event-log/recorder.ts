import type { AccountEvent } from '#libs/domain/account/events.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import { accountEventCodec, inboxEventCodec, webhookEventCodec } from './codecs.js'
import type { Recorded } from './cloud-event.js'
import type { EventLog, Position } from './event-log.js'

/** Whom an event concerns and who caused it. */
export type Attribution = Pick<Recorded<unknown>, 'accountId' | 'environment' | 'keyId'>

/** Appends domain events to the log on behalf of one role. Rejects as `EventLog.append` does. */
export class Recorder {
  constructor(
    private readonly log: Pick<EventLog, 'append'>,
    private readonly source:
      '/mayfly/api' | '/mayfly/smtp' | '/mayfly/lifecycle' | '/mayfly/webhooks' | '/mayfly/cli',
    private readonly now: () => Date,
  ) {}

  /** Resolves with the event's position once it is durable. */
  recordInboxEvent(event: InboxEvent, attribution: Attribution): Promise<Position> {
    return this.log.append('inbox-events', inboxEventCodec.encode(this.recorded(event, attribution)))
  }

  /** Resolves with the event's position once it is durable. */
  recordAccountEvent(event: AccountEvent, attribution: Attribution): Promise<Position> {
    return this.log.append('account-events', accountEventCodec.encode(this.recorded(event, attribution)))
  }

  /** Resolves with the event's position once it is durable. */
  recordWebhookEvent(event: WebhookEvent, attribution: Attribution): Promise<Position> {
    return this.log.append('webhook-events', webhookEventCodec.encode(this.recorded(event, attribution)))
  }

  private recorded<Event>(event: Event, { accountId, environment, keyId }: Attribution): Recorded<Event> {
    return { id: mintId('evt'), time: this.now(), source: this.source, accountId, environment, keyId, event }
  }
}
