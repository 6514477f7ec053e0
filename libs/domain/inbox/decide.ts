import { accept, refuse, type Decision } from '#libs/domain/events/decision.js'
import type { AccountId, InboxId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'
import type { Address } from './address.js'
import type { InboxAttribution, InboxEvent } from './events.js'
import { asOf, type EndedInbox, type Inbox, type InboxSlice } from './inbox.js'
import type { Lifespan } from './lifespan.js'

export type InboxCommand =
  | {
      type: 'CreateInbox'
      inboxId: InboxId
      accountId: AccountId
      environment: string
      keyId: KeyId
      address: Address
      lifespan: Lifespan
      retention: Lifespan
      labels: Readonly<Record<string, string>>
      maxMessages: number
      isProtected: boolean
      sealed: Uint8Array
      now: Date
    }
  | {
      type: 'ReceiveMessage'
      inboxId: InboxId
      messageId: MessageId
      size: number
      digest: string
      sealed: Uint8Array
      now: Date
    }
  | { type: 'DeleteMessage'; inboxId: InboxId; messageId: MessageId; keyId: KeyId; now: Date }
  | { type: 'DeleteInbox'; inboxId: InboxId; keyId: KeyId; now: Date }
  | { type: 'ExpireInbox'; inboxId: InboxId; now: Date }

/** Why a command was refused; an expected answer, not an error. */
export type Refusal =
  | { code: 'over-retention'; retention: Lifespan }
  | { code: 'unknown-inbox' }
  | { code: 'inbox-ended'; inbox: EndedInbox }
  | { code: 'inbox-full'; maxMessages: number }
  | { code: 'unknown-message' }

/**
 * What a command leads to, checked against the view. The view may lag and others may append meanwhile: order
 * on the log arbitrates, and `evolve` lets what came too late change nothing. No event and no refusal: it
 * already is as the command wants it.
 */
export function decide({ inbox, message }: InboxSlice, command: InboxCommand): Decision<InboxEvent, Refusal> {
  if (command.type === 'CreateInbox') return create(command)
  if (inbox === null) return refuse({ code: 'unknown-inbox' })
  const { inboxId, now } = command

  if (command.type === 'ExpireInbox') {
    const isDue = inbox.state === 'active' && now >= inbox.expiresAt
    if (!isDue) return accept()
    return accept({ type: 'InboxExpired', inboxId, expiredAt: inbox.expiresAt, inbox: attributionOf(inbox) })
  }

  const current = asOf(inbox, now)
  if (command.type === 'DeleteInbox' && current.state === 'deleted') return accept()
  if (current.state !== 'active') return refuse({ code: 'inbox-ended', inbox: current })

  switch (command.type) {
    case 'ReceiveMessage': {
      const { messageId, size, digest, sealed } = command
      if (current.messageCount >= current.maxMessages) {
        return refuse({ code: 'inbox-full', maxMessages: current.maxMessages })
      }
      return accept({
        type: 'MessageReceived',
        inboxId,
        messageId,
        receivedAt: now,
        size,
        digest,
        sealed,
        inbox: attributionOf(current),
      })
    }
    case 'DeleteMessage': {
      if (message === null) return refuse({ code: 'unknown-message' })
      if (message.state === 'deleted') return accept()
      const { messageId, keyId } = command
      const inbox = attributionOf(current)
      return accept({ type: 'MessageDeleted', inboxId, messageId, keyId, deletedAt: now, inbox })
    }
    case 'DeleteInbox':
      const { keyId } = command
      return accept({ type: 'InboxDeleted', inboxId, keyId, deletedAt: now, inbox: attributionOf(current) })
  }
}

function attributionOf({ keyId, labels }: Inbox): InboxAttribution {
  return { keyId, labels }
}

/** Also to be asked before anything is made for an inbox that would be refused. */
export function isOverRetention(lifespan: Lifespan, retention: Lifespan): boolean {
  return lifespan.ms > retention.ms
}

function create(command: Extract<InboxCommand, { type: 'CreateInbox' }>): Decision<InboxEvent, Refusal> {
  const { type: _type, lifespan, retention, now, ...facts } = command
  if (isOverRetention(lifespan, retention)) return refuse({ code: 'over-retention', retention })
  return accept({
    ...facts,
    type: 'InboxCreated',
    duration: lifespan.text,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifespan.ms),
  })
}
