import { ACCOUNT_EVENTS, type AccountEvent } from '#libs/domain/account/events.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { INBOX_KEY_EVENTS, type InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { USAGE_EVENTS, type UsageEvent } from '#libs/domain/usage/usage-events.js'
import { WEBHOOK_EVENTS, type WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import { EventCodec, OccurrenceCodec } from './cloud-event.js'
import type { LogTopic } from './topics.js'

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
