import { accept, refuse, type Decision } from '#libs/domain/events/decision.js'
import type { InboxId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'
import type { InboxCreated, InboxEvent, MessageReceived } from './events.js'
import { asOf, type EndedInbox, type InboxSlice } from './inbox.js'
import type { Lifespan } from './lifespan.js'

export type InboxCommand =
  | (Omit<InboxCreated, 'type' | 'duration' | 'createdAt' | 'expiresAt'> & {
      type: 'CreateInbox'
      lifespan: Lifespan
      retention: Lifespan
      now: Date
    })
  | (Omit<MessageReceived, 'type' | 'receivedAt' | 'inbox'> & { type: 'ReceiveMessage'; now: Date })
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
  const ofInbox = { inboxId, inbox: { keyId: inbox.keyId, labels: inbox.labels } }

  if (command.type === 'ExpireInbox') {
    const isDue = inbox.state === 'active' && now >= inbox.expiresAt
    if (!isDue) return accept()
    return accept({ type: 'InboxExpired', ...ofInbox, expiredAt: inbox.expiresAt })
  }

  const current = asOf(inbox, now)
  if (command.type === 'DeleteInbox' && current.state === 'deleted') return accept()
  if (current.state !== 'active') return refuse({ code: 'inbox-ended', inbox: current })

  switch (command.type) {
    case 'ReceiveMessage': {
      const { type: _type, now: receivedAt, ...facts } = command
      if (current.messageCount >= current.maxMessages) {
        return refuse({ code: 'inbox-full', maxMessages: current.maxMessages })
      }
      return accept({ type: 'MessageReceived', ...ofInbox, ...facts, receivedAt })
    }
    case 'DeleteMessage': {
      if (message === null) return refuse({ code: 'unknown-message' })
      if (message.state === 'deleted') return accept()
      const { messageId, keyId } = command
      return accept({ type: 'MessageDeleted', ...ofInbox, messageId, keyId, deletedAt: now })
    }
    case 'DeleteInbox':
      return accept({ type: 'InboxDeleted', ...ofInbox, keyId: command.keyId, deletedAt: now })
  }
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
