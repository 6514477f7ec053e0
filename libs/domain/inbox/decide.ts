import { accept, refuse, type Decision } from '#libs/domain/event-sourcing/decision.js'
import type { InboxId, KeyId, MessageId } from '#libs/domain/ids/typeid.js'
import type { InboxCreated, InboxEvent, MessageDropped, MessageReceived } from './events.js'
import { haveSameFaults, type Fault } from './fault.js'
import { asOf, type ActiveInbox, type EndedInbox, type InboxSlice } from './inbox.js'
import type { Lifespan } from './new-inbox.js'
import { isLive, MAX_TOKENS, type TokenAccess, type TokenId } from './token.js'

export type InboxCommand =
  | (Omit<InboxCreated, 'type' | 'duration' | 'createdAt' | 'expiresAt'> & {
      type: 'CreateInbox'
      lifespan: Lifespan
      retention: Lifespan
      now: Date
    })
  | {
      type: 'ChangeInbox'
      inboxId: InboxId
      keyId: KeyId
      /** Counted from the creation; null to keep it. */
      lifespan: Lifespan | null
      retention: Lifespan
      /** All labels; null to keep them. */
      labels: Readonly<Record<string, string>> | null
      /** The sealed InboxDetails; null to keep them. */
      sealed: Uint8Array | null
      now: Date
    }
  | TokenCommand
  | { type: 'SetFaults'; inboxId: InboxId; keyId: KeyId; faults: readonly Fault[]; now: Date }
  | (Omit<MessageReceived, 'type' | 'receivedAt' | 'inbox'> & { type: 'ReceiveMessage'; now: Date })
  | (Omit<MessageDropped, 'type' | 'droppedAt' | 'inbox'> & { type: 'DropMessage'; now: Date })
  | { type: 'DeleteMessage'; inboxId: InboxId; messageId: MessageId; keyId: KeyId; now: Date }
  | { type: 'DeleteInbox'; inboxId: InboxId; keyId: KeyId; now: Date }
  | { type: 'ExpireInbox'; inboxId: InboxId; now: Date }

export type TokenCommand =
  | {
      type: 'IssueToken'
      inboxId: InboxId
      keyId: KeyId
      tokenId: TokenId
      hash: string
      access: TokenAccess
      /** Counted from now; null to be valid until the inbox expires. */
      lifeMs: number | null
      now: Date
    }
  | { type: 'RevokeToken'; inboxId: InboxId; keyId: KeyId; tokenId: TokenId; now: Date }

/**
 * An inbox that expires within this time can't be changed any more. Otherwise the change could reach the log after an
 * InboxExpired that another process writes at the expiry, and would have no effect although it was answered with a success.
 */
const UNCHANGEABLE_MS = 1_000

/** Why a command was refused. Expected, not an error. */
export type Refusal =
  | { code: 'over-retention'; retention: Lifespan }
  | { code: 'older-than-lifespan' }
  | { code: 'unknown-inbox' }
  | { code: 'inbox-ended'; inbox: EndedInbox }
  | { code: 'inbox-full'; maxMessages: number }
  | { code: 'unknown-message' }
  | { code: 'unknown-token' }
  | { code: 'outlives-inbox'; expiresAt: Date }
  | { code: 'too-many-tokens' }

/**
 * Checks a command against the view. The view may lag, and other processes may append meanwhile: the order on the log
 * decides, and `evolve` ignores events that are too late. Neither an event nor a refusal means that there is nothing to
 * change.
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

  const current = asOf(inbox, command.type === 'ChangeInbox' ? later(now, UNCHANGEABLE_MS) : now)
  if (command.type === 'DeleteInbox' && current.state === 'deleted') return accept()
  if (current.state !== 'active') return refuse({ code: 'inbox-ended', inbox: current })

  switch (command.type) {
    case 'ChangeInbox':
      return change(current, command)
    case 'IssueToken':
    case 'RevokeToken':
      return changeTokens(current, command)
    case 'SetFaults': {
      const { keyId, faults } = command
      if (haveSameFaults(faults, current.faults)) return accept()
      const revision = current.revision + 1
      return accept({ type: 'FaultsSet', ...ofInbox, keyId, faults, setAt: now, revision })
    }
    case 'DropMessage': {
      const { type: _type, now: droppedAt, ...facts } = command
      return accept({ type: 'MessageDropped', ...ofInbox, ...facts, droppedAt })
    }
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

/** Exported so that a caller can check it before it creates a key for an inbox that would be refused. */
export function isOverRetention(lifespan: Lifespan, retention: Lifespan): boolean {
  return lifespan.ms > retention.ms
}

function create(command: Extract<InboxCommand, { type: 'CreateInbox' }>): Decision<InboxEvent, Refusal> {
  const { type: _type, lifespan, retention, now, ...facts } = command
  if (isOverRetention(lifespan, retention)) return refuse({ code: 'over-retention', retention })
  const expiresAt = later(now, lifespan.ms)
  return accept({ ...facts, type: 'InboxCreated', duration: lifespan.text, createdAt: now, expiresAt })
}

function change(
  inbox: ActiveInbox,
  command: Extract<InboxCommand, { type: 'ChangeInbox' }>,
): Decision<InboxEvent, Refusal> {
  const { inboxId, keyId, lifespan, retention, sealed, now: changedAt } = command
  const labels = command.labels ?? inbox.labels
  if (lifespan !== null && isOverRetention(lifespan, retention)) {
    return refuse({ code: 'over-retention', retention })
  }
  const lifetime =
    lifespan === null || lifespan.text === inbox.duration
      ? null
      : { duration: lifespan.text, expiresAt: later(inbox.createdAt, lifespan.ms) }
  if (lifetime !== null && lifetime.expiresAt <= changedAt) return refuse({ code: 'older-than-lifespan' })
  if (lifetime === null && sealed === null && haveSamePairs(labels, inbox.labels)) return accept()
  return accept({
    ...{ type: 'InboxChanged', inboxId, keyId, changedAt, revision: inbox.revision + 1, lifetime, sealed },
    inbox: { keyId: inbox.keyId, labels },
  })
}

/** Issuing or revoking a token again changes nothing. */
function changeTokens(inbox: ActiveInbox, command: TokenCommand): Decision<InboxEvent, Refusal> {
  const { inboxId, keyId, tokenId, now } = command
  const token = inbox.tokens.find(({ id }) => id === tokenId)
  const ofInbox = { keyId: inbox.keyId, labels: inbox.labels }
  const facts = { inboxId, keyId, tokenId, revision: inbox.revision + 1, inbox: ofInbox }
  if (command.type === 'RevokeToken') {
    if (token === undefined) return refuse({ code: 'unknown-token' })
    if (token.revokedAt !== null) return accept()
    return accept({ type: 'InboxTokenRevoked', ...facts, revokedAt: now })
  }
  if (token !== undefined) return accept()
  const { hash, access, lifeMs } = command
  const leftMs = inbox.expiresAt.getTime() - now.getTime()
  if (lifeMs !== null && lifeMs > leftMs)
    return refuse({ code: 'outlives-inbox', expiresAt: inbox.expiresAt })
  const expiresAt = new Date(now.getTime() + (lifeMs ?? leftMs))
  const valid = inbox.tokens.filter((each) => isLive(each, now))
  if (valid.length >= MAX_TOKENS) return refuse({ code: 'too-many-tokens' })
  return accept({ type: 'InboxTokenIssued', ...facts, hash, access, issuedAt: now, expiresAt })
}

type Labels = ActiveInbox['labels']

export function haveSamePairs(one: Labels, other: Labels): boolean {
  const pairs = Object.entries(one)
  return (
    pairs.length === Object.keys(other).length &&
    pairs.every(([name, value]) => Object.hasOwn(other, name) && other[name] === value)
  )
}

function later(time: Date, ms: number): Date {
  return new Date(time.getTime() + ms)
}
