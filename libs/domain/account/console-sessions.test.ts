import { specificationOf } from '#libs/domain/event-sourcing/specification.test-support.js'
import { idFromBytes, type ConsoleSessionId, type MemberId } from '#libs/domain/ids/typeid.js'
import { ACCOUNT_ID, day, hash, KEY_ID } from './account.test-support.js'
import {
  decideConsole,
  evolveSessions,
  isActive,
  LINK_MS,
  MAX_SESSIONS,
  SESSION_MS,
  type ConsoleCommand,
  type ConsoleEvent,
  type ConsoleSession,
} from './console-sessions.js'

const { given, replay } = specificationOf({
  initial: [] as readonly ConsoleSession[],
  evolve: evolveSessions,
  decide: (consoleSessions, command: ConsoleCommand) =>
    decideConsole({ id: ACCOUNT_ID, consoleSessions }, command),
})

const accountId = ACCOUNT_ID
const sessionIdOf = (n: number): ConsoleSessionId => idFromBytes('ses', Buffer.alloc(16, n))
const sessionId = sessionIdOf(1)
const after = (ms: number) => new Date(day(1).getTime() + ms)
const [linkHash, secretHash] = [hash('a'), hash('b')]

const created = (id = sessionId, createdAt = day(1)): ConsoleEvent => ({
  type: 'ConsoleLinkCreated',
  ...{ accountId, sessionId: id, createdBy: KEY_ID, memberId: null, offeredBy: null, linkHash, createdAt },
  expiresAt: new Date(createdAt.getTime() + LINK_MS),
})
const started = (startedAt: Date, id = sessionId): ConsoleEvent => ({
  type: 'ConsoleSessionStarted',
  ...{
    accountId,
    sessionId: id,
    startedBy: KEY_ID,
    memberId: null,
    isIdentified: false,
    secretHash,
    startedAt,
  },
  expiresAt: new Date(startedAt.getTime() + SESSION_MS),
})
const ended = (endedAt: Date, id = sessionId): ConsoleEvent => ({
  type: 'ConsoleSessionEnded',
  ...{ accountId, sessionId: id, endedAt },
})

const createLink = (now: Date): ConsoleCommand => ({
  type: 'CreateConsoleLink',
  ...{ sessionId, createdBy: KEY_ID, memberId: null, offeredBy: null, linkHash, now },
})
const useLink = (now: Date, hashOfLink = linkHash): ConsoleCommand => ({
  type: 'UseConsoleLink',
  ...{ linkHash: hashOfLink, secretHash, now },
})
const end = (now: Date): ConsoleCommand => ({ type: 'EndConsoleSession', sessionId, now })

describe('a link', () => {
  it('is created once', () => {
    given()
      .when(createLink(day(1)))
      .then([created()])
    given(created())
      .when(createLink(day(2)))
      .then([])
  })

  it('starts a session of twelve hours until it expires', () => {
    const last = after(LINK_MS - 1)
    given(created())
      .when(useLink(last))
      .then([started(last)])
    given(created())
      .when(useLink(after(LINK_MS)))
      .thenRefused({ code: 'unknown-link' })
  })

  it('is used once', () => {
    given(created(), started(after(1)))
      .when(useLink(after(2)))
      .thenRefused({ code: 'unknown-link' })
    given(created(), started(after(1)), ended(after(2)))
      .when(useLink(after(3)))
      .thenRefused({ code: 'unknown-link' })
  })

  it('is known by its hash only', () => {
    given(created())
      .when(useLink(after(1), hash('f')))
      .thenRefused({ code: 'unknown-link' })
  })

  it('that is used twice at once starts the session that is first on the log', () => {
    const rival = { ...started(after(1)), secretHash: hash('f') }
    expect(replay([created(), started(after(1)), rival])).toEqual(replay([created(), started(after(1))]))
  })

  it('can’t be used after it was ended', () => {
    given(created(), ended(after(1)))
      .when(useLink(after(2)))
      .thenRefused({ code: 'unknown-link' })
  })
})

describe('a session', () => {
  it('starts without a link too', () => {
    given()
      .when({
        type: 'StartConsoleSession',
        sessionId,
        startedBy: KEY_ID,
        memberId: null,
        isIdentified: false,
        secretHash,
        now: day(1),
      })
      .then([started(day(1))])
  })

  it('is active for twelve hours', () => {
    const [session] = replay([started(day(1))])
    if (session === undefined) throw new Error('no session')
    expect(isActive(session, after(SESSION_MS - 1))).toBe(true)
    expect(isActive(session, after(SESSION_MS))).toBe(false)
  })

  it('ends once, and does not start again', () => {
    given(started(day(1)))
      .when(end(after(1)))
      .then([ended(after(1))])
    given(started(day(1)), ended(after(1)))
      .when(end(after(2)))
      .then([])
    given()
      .when(end(after(1)))
      .thenRefused({ code: 'unknown-session' })
    const history = [created(), started(day(1)), ended(after(1))]
    expect(replay([...history, ...history])).toEqual(replay(history))
    expect(replay(history).map(({ state }) => state)).toEqual(['ended'])
  })
})

describe('an account', () => {
  const full = Array.from({ length: MAX_SESSIONS.others }, (_, n) => started(after(n), sessionIdOf(n + 1)))
  const idsAfter = (...events: ConsoleEvent[]) => replay(events).map(({ id }) => id)

  it('has 50 sessions at most: one more replaces one that has ended', () => {
    const next = started(after(99), sessionIdOf(99))
    const ids = idsAfter(...full, ended(after(60), sessionIdOf(7)), next)
    expect(ids).toHaveLength(MAX_SESSIONS.others)
    expect(ids).not.toContain(sessionIdOf(7))
    expect(ids.at(-1)).toBe(sessionIdOf(99))
  })

  it('replaces a link before a session, and the oldest session if all are active', () => {
    const [, ...others] = full
    const next = started(after(99), sessionIdOf(99))
    expect(idsAfter(...others, created(sessionIdOf(60)), next)).not.toContain(sessionIdOf(60))
    expect(idsAfter(...full, next)).not.toContain(sessionIdOf(1))
  })

  it('has ten sessions of each member, which replace only each other', () => {
    const ofMember = (n: number, memberId: MemberId) => {
      return { ...started(after(n), sessionIdOf(n + 1)), memberId } as ConsoleEvent
    }
    const [one, two] = [1, 2].map((n) => idFromBytes('mem', Buffer.alloc(16, n)))
    if (one === undefined || two === undefined) throw new Error('no members')
    const sessions = Array.from({ length: MAX_SESSIONS.member }, (_, n) => ofMember(n, one))
    const ids = idsAfter(...sessions, ofMember(60, two), ofMember(61, one))
    expect(ids).toHaveLength(MAX_SESSIONS.member + 1)
    expect(ids).not.toContain(sessionIdOf(1))
    expect(ids).toContain(sessionIdOf(61))
  })

  it('replaces a session that has expired before any other', () => {
    const early = started(new Date(day(1).getTime() - SESSION_MS), sessionIdOf(60))
    const next = started(after(99), sessionIdOf(99))
    const ids = idsAfter(created(sessionIdOf(61)), ...full.slice(2), early, next)
    expect(ids).not.toContain(sessionIdOf(60))
    expect(ids).toContain(sessionIdOf(61))
  })
})
