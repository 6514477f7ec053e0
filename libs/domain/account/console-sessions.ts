import {
  boolean,
  event,
  id,
  optional,
  sha256,
  time,
  type EventOf,
} from '#libs/domain/event-sourcing/declare.js'
import { accept, refuse, type Decision } from '#libs/domain/event-sourcing/decision.js'
import type { AccountId, ConsoleSessionId, KeyId, MemberId } from '#libs/domain/ids/typeid.js'

/*
 * Sessions of people who use an account in the console. A session starts with a link that is used once, or with an API
 * key. The log has only hashes of the secrets of links and sessions.
 */

export const CONSOLE_EVENTS = {
  ConsoleLinkCreated: event('account.console-link-created', {
    accountId: id('acc'),
    /** Of the session that the link starts. */
    sessionId: id('ses'),
    /** The session ends when this key is revoked, unless it is that of a member. */
    createdBy: id('key'),
    /** The member who is to use it; null if whoever has the link may do what the key may. */
    memberId: optional(id('mem'), null),
    /** The other member, or the key, that made it for the member; null if the member did. */
    offeredBy: optional(id('mem', 'key'), null),
    linkHash: sha256,
    createdAt: time,
    expiresAt: time,
  }),

  ConsoleSessionStarted: event('account.console-session-started', {
    accountId: id('acc'),
    sessionId: id('ses'),
    /** The key that was sent, or that created the link. */
    startedBy: id('key'),
    memberId: optional(id('mem'), null),
    /** Whether an identity provider has said who the member is, instead of a link or a key. */
    isIdentified: optional(boolean, false),
    secretHash: sha256,
    startedAt: time,
    expiresAt: time,
  }),

  ConsoleSessionEnded: event(
    'account.console-session-ended',
    { accountId: id('acc'), sessionId: id('ses'), endedAt: time },
    { isRemoval: true },
  ),
}

export type ConsoleEvent = EventOf<typeof CONSOLE_EVENTS>

/** A session, from the creation of its link on. */
export interface ConsoleSession {
  id: ConsoleSessionId
  /** The key that it was started with, or that a member's usage is counted for. */
  keyId: KeyId
  /** The other member, or the key, that made its link for the member; null if none did. */
  offeredBy: MemberId | KeyId | null
  /** Whether an identity provider has said who the member is. */
  isIdentified: boolean
  /** The member who uses it, with whom it ends; null for a session that ends with its key. */
  memberId: MemberId | null
  /** `offered`: the link has not been used. */
  state: 'offered' | 'active' | 'ended'
  /** Of the link while the session is offered, then of the session. */
  secretHash: string
  /** When the link was created, or the session started. */
  createdAt: Date
  expiresAt: Date
}

export const LINK_MS = 10 * 60_000
export const SESSION_MS = 12 * 3_600_000

/**
 * Including links: of one member, of all who are no members, and of one account. One more replaces one that has ended, or
 * else the oldest.
 */
export const MAX_SESSIONS = { member: 10, others: 50, account: 500 }

type LinkFacts = Omit<EventOf<typeof CONSOLE_EVENTS, 'ConsoleLinkCreated'>, Decided | 'createdAt'>
type SessionFacts = Omit<EventOf<typeof CONSOLE_EVENTS, 'ConsoleSessionStarted'>, Decided | 'startedAt'>
type Decided = 'type' | 'accountId' | 'expiresAt'

export type ConsoleCommand =
  | (LinkFacts & { type: 'CreateConsoleLink'; now: Date })
  | { type: 'UseConsoleLink'; linkHash: string; secretHash: string; now: Date }
  | (SessionFacts & { type: 'StartConsoleSession'; now: Date })
  | { type: 'EndConsoleSession'; sessionId: ConsoleSessionId; now: Date }

export type ConsoleRefusal = { code: 'unknown-link' } | { code: 'unknown-session' }

interface Owner {
  id: AccountId
  consoleSessions: readonly ConsoleSession[]
}

/** Checks a command against the view, which may lag. Of two uses of a link, the first on the log starts the session. */
export function decideConsole(
  { id: accountId, consoleSessions: sessions }: Owner,
  command: ConsoleCommand,
): Decision<ConsoleEvent, ConsoleRefusal> {
  const { now } = command
  switch (command.type) {
    case 'CreateConsoleLink': {
      const { type: _type, now: createdAt, ...facts } = command
      if (find(sessions, facts.sessionId) !== null) return accept()
      const expiresAt = new Date(now.getTime() + LINK_MS)
      return accept({ ...facts, type: 'ConsoleLinkCreated', accountId, createdAt, expiresAt })
    }
    case 'UseConsoleLink': {
      const link = sessions.find(
        ({ state, secretHash }) => state === 'offered' && secretHash === command.linkHash,
      )
      if (link === undefined || now >= link.expiresAt) return refuse({ code: 'unknown-link' })
      const { id: sessionId, keyId: startedBy, memberId } = link
      const { secretHash } = command
      return accept(
        started(accountId, { sessionId, startedBy, memberId, isIdentified: false, secretHash }, now),
      )
    }
    case 'StartConsoleSession': {
      const { type: _type, now: _now, ...facts } = command
      return accept(started(accountId, facts, now))
    }
    case 'EndConsoleSession': {
      const session = find(sessions, command.sessionId)
      if (session === null) return refuse({ code: 'unknown-session' })
      if (session.state === 'ended') return accept()
      return accept({ type: 'ConsoleSessionEnded', accountId, sessionId: session.id, endedAt: now })
    }
  }
}

function started(accountId: AccountId, facts: SessionFacts, startedAt: Date): ConsoleEvent {
  return { ...facts, type: 'ConsoleSessionStarted', accountId, startedAt, expiresAt: sessionEnd(startedAt) }
}

export function sessionEnd(startedAt: Date): Date {
  return new Date(startedAt.getTime() + SESSION_MS)
}

/** Total and idempotent: for a repeated or misplaced event, returns the same list. */
export function evolveSessions(
  sessions: readonly ConsoleSession[],
  event: ConsoleEvent,
): readonly ConsoleSession[] {
  const known = find(sessions, event.sessionId)
  switch (event.type) {
    case 'ConsoleLinkCreated': {
      if (known !== null) return sessions
      const { sessionId: id, createdBy: keyId, memberId, offeredBy, createdAt, expiresAt } = event
      const link = { id, keyId, memberId, offeredBy, secretHash: event.linkHash, createdAt, expiresAt }
      return added(sessions, { ...link, isIdentified: false, state: 'offered' })
    }
    case 'ConsoleSessionStarted': {
      const { sessionId: id, startedBy: keyId, memberId, isIdentified, secretHash, expiresAt } = event
      const offeredBy = known?.offeredBy ?? null
      const facts = { id, keyId, memberId, offeredBy, isIdentified, secretHash, expiresAt }
      const session = { ...facts, createdAt: event.startedAt, state: 'active' } as const
      if (known === null) return added(sessions, session)
      return known.state === 'offered' ? replaced(sessions, { ...known, ...session }) : sessions
    }
    case 'ConsoleSessionEnded':
      if (known === null || known.state === 'ended') return sessions
      return replaced(sessions, { ...known, state: 'ended' })
  }
}

function find(sessions: readonly ConsoleSession[], sessionId: ConsoleSessionId): ConsoleSession | null {
  return sessions.find(({ id }) => id === sessionId) ?? null
}

function replaced(sessions: readonly ConsoleSession[], session: ConsoleSession): ConsoleSession[] {
  return sessions.map((each) => (each.id === session.id ? session : each))
}

/** Sessions that have ended are kept while there is space, so that a repeated event does not start them again. */
function added(sessions: readonly ConsoleSession[], session: ConsoleSession): ConsoleSession[] {
  const { memberId } = session
  const own = sessions.filter((each) => each.memberId === memberId)
  const max = memberId === null ? MAX_SESSIONS.others : MAX_SESSIONS.member
  const dropped = [
    ...(own.length >= max ? [leastOf(own, session)] : []),
    ...(sessions.length >= MAX_SESSIONS.account ? [leastOf(sessions, session)] : []),
  ]
  return [...sessions.filter((each) => !dropped.includes(each)), session]
}

/** One that has ended, or else a link, or else the oldest. */
function leastOf(
  sessions: readonly ConsoleSession[],
  { createdAt }: ConsoleSession,
): ConsoleSession | undefined {
  const rank = ({ state, expiresAt }: ConsoleSession) =>
    state === 'ended' || expiresAt <= createdAt ? 0 : state === 'offered' ? 1 : 2
  const least = Math.min(...sessions.map(rank))
  return sessions.find((each) => rank(each) === least)
}

/** Whether the session can be used now, as far as the account says: its key or its member may have ended. */
export function isActive({ state, expiresAt }: ConsoleSession, now: Date): boolean {
  return state === 'active' && now < expiresAt
}
