import { randomBytes } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOrphaned, isValidSecret, type Account } from '#libs/domain/account/account.js'
import {
  decideMember,
  isMember,
  scopesOfKey,
  scopesOfMember,
  type Member,
} from '#libs/domain/account/member.js'
import {
  decideConsole,
  evolveSessions,
  isActive,
  sessionEnd,
  type ConsoleCommand,
  type ConsoleEvent,
  type ConsoleRefusal,
  type ConsoleSession,
} from '#libs/domain/account/console-sessions.js'
import type { Decision } from '#libs/domain/event-sourcing/decision.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { isId, type AccountId, type MemberId } from '#libs/domain/ids/typeid.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import type { Attribution } from '#libs/ports/event-log/cloud-event.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import { type Principal, requireApiAccess, requireScope } from '../access/principal.js'
import { isOfActive, KnownKeys, Plans, readParties, type KnownSession } from '../access/key-lookup.js'
import { rateLimited, Throttle } from '../access/request-limits.js'
import { Problem, unavailable, noResource, requireNotSuspended } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { ConsoleAddress } from './console-address.js'

/**
 * The secret of a link or of a session: the id of its account, so that no index is needed, and 256 random bits. That of an
 * invitation has the id of its member instead.
 */
const SECRET = /^((?:acc|mem)_[0-9a-z]{26})\.[\w-]{43}$/
export const SECRET_BYTES = 32

/** Of one remote address. Secrets can't be guessed, but a configured key may be weak. */
const FAILED_SIGN_INS: RatePolicy = { name: 'failed-sign-ins', quota: 20, windowSeconds: 60 }

export interface SignedIn {
  secret: string
  known: KnownSession
}

export type LinkCreator = Pick<
  Principal,
  'accountId' | 'keyId' | 'environment' | 'actor' | 'member' | 'sessionId'
>

/** The sessions of the console: starts them with a link or a key, finds them by their cookie, and ends them. */
@Injectable()
export class ConsoleSessions {
  constructor(
    private readonly views: Views,
    private readonly recorder: VisibleRecorder,
    private readonly knownKeys: KnownKeys,
    private readonly plans: Plans,
    private readonly instance: Instance,
    private readonly throttle: Throttle,
    private readonly personal: PersonalData,
    private readonly address: ConsoleAddress,
  ) {}

  /**
   * Creates a link that starts one session, of that member if not null, whose account may be another one for an operator. Only
   * this answer has its secret.
   */
  async createLink(
    creator: LinkCreator,
    member: Member | null,
    minting: Minting,
  ): Promise<{ secret: string; expiresAt: Date }> {
    const { accountId } = member ?? creator
    const account = await this.accountOf(accountId)
    if (account === null) throw noResource('account', accountId)
    const isForOther = member !== null && member.id !== creator.member?.id
    // The session ends with the personal key that its member has made the link with.
    const keyId = isForOther ? member.usageKeyId : creator.keyId
    const sessionId = minting.id('ses')
    const secret = secretOf(accountId, minting.bytes(SECRET_BYTES))
    const linkHash = hashSecret(secret)
    const memberId = member?.id ?? null
    // A link that is made in a session by somebody else's link is not more the member's own than that one.
    const current = account.consoleSessions.find(({ id }) => id === creator.sessionId)
    const offeredBy = isForOther ? (creator.member?.id ?? creator.keyId) : (current?.offeredBy ?? null)
    const facts = { sessionId, createdBy: keyId, memberId, offeredBy, linkHash, now: this.instance.now() }
    await this.execute(account, { type: 'CreateConsoleLink', ...facts }, creator)
    const link = (await this.accountOf(accountId))?.consoleSessions.find(({ id }) => id === sessionId)
    // The views were lost in the meantime and are being rebuilt.
    if (link === undefined) throw unavailable('catching-up', `The link of ${sessionId} can't be read yet.`)
    return { secret, expiresAt: link.expiresAt }
  }

  /**
   * Starts a session with the secret of a link, or a key with the scope `admin`. Resolves with the session and its
   * secret. `currentSecret` is the secret of the browser's session, which only its own key may replace; null if it has none
   * or may be replaced. Throws sign-in-failed; already-signed-in if that session may not be replaced; missing-scope and
   * plan-lacks-api-access for a valid key; sign-in-with-provider if the account requires that; and rate-limited if too many
   * attempts from the address have failed.
   */
  async signIn(given: string, remoteAddress: string, currentSecret: string | null): Promise<SignedIn> {
    return this.limitFailures(remoteAddress, () => this.start(given, currentSecret))
  }

  /** Runs an attempt to sign in. Throws rate-limited if too many from the address have ended with sign-in-failed. */
  async limitFailures<Result>(remoteAddress: string, attempt: () => Promise<Result>): Promise<Result> {
    const counter = `console-sign-in:${remoteAddress}`
    const verdict = await this.throttle.count((limits) => limits.peek(counter, [FAILED_SIGN_INS]))
    if (verdict?.isAllowed === false) {
      const { quota } = FAILED_SIGN_INS
      throw rateLimited(
        verdict.next.refillsInMs,
        () => `${quota} attempts to sign in from this address have failed within a minute.`,
      )
    }
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof Problem && error.code === 'sign-in-failed') {
        await this.throttle.count((limits) => limits.consume(counter, [FAILED_SIGN_INS]))
      }
      throw error
    }
  }

  private async start(given: string, currentSecret: string | null): Promise<SignedIn> {
    const [, id = ''] = SECRET.exec(given) ?? []
    if (isId('mem', id)) return this.join(id, given, currentSecret)
    const { account, key, member, command } = isId('acc', id)
      ? await this.useOfLink(id, given)
      : await this.useOfKey(given)
    await this.requireReplaceable(currentSecret, { account, key, member })
    return this.startWith({ account, key, member }, command)
  }

  /**
   * Starts a session of somebody whom an identity provider has identified as this member. Throws account-suspended and
   * plan-lacks-api-access, and sign-in-failed if the membership has ended.
   */
  async startOf({ id: memberId, accountId, usageKeyId }: Member): Promise<SignedIn> {
    const [account, key, member] = await this.views.readAccounts((accounts) =>
      Promise.all([accounts.account(accountId), accounts.key(usageKeyId), accounts.member(memberId)]),
    )
    if (account === null || key === null || member?.state !== 'active') throw signInFailed()
    requireNotSuspended(account)
    requireApiAccess(this.plans.of(account))
    const facts = { sessionId: mintId('ses'), startedBy: key.id, memberId, isIdentified: true } as const
    return this.startWith({ account, key, member }, { type: 'StartConsoleSession', ...facts })
  }

  private async startWith({ account, key, member }: SignedInAs, command: StartCommand): Promise<SignedIn> {
    const secret = secretOf(account.id, randomBytes(SECRET_BYTES))
    const secretHash = hashSecret(secret)
    const { id: keyId, environment } = key
    const start = { ...command, secretHash, now: this.instance.now() }
    const { events } = await this.execute(account, start, { keyId, environment, actor: member?.id ?? null })
    const [session] = events.reduce(evolveSessions, [])
    if (session === undefined) throw signInFailed()
    const shown = (await this.accountOf(account.id))?.consoleSessions.find(({ id }) => id === session.id)
    // Another use of the same link was first on the log. A session that is not shown was replaced by newer ones.
    if (shown !== undefined && shown.secretHash !== secretHash) throw signInFailed()
    return { secret, known: { account, key, session, member } }
  }

  /** Uses an invitation: the member joins, and is signed in. */
  private async join(memberId: MemberId, token: string, currentSecret: string | null): Promise<SignedIn> {
    const { accounts } = this.views
    const member = await this.views.readAccounts((views) => views.member(memberId))
    const account = member && (await this.accountOf(member.accountId))
    const key = member && (await accounts.key(member.usageKeyId))
    if (member === null || account === null || key === null) throw signInFailed()
    requireNotSuspended(account)
    requireLinksAndKeys(account)
    requireApiAccess(this.plans.of(account))
    const now = this.instance.now()
    const secret = secretOf(account.id, randomBytes(SECRET_BYTES))
    const session = { id: mintId('ses'), secretHash: hashSecret(secret), expiresAt: sessionEnd(now) }
    const slice = { member, owners: account.owners }
    const ids = { accountId: account.id, memberId }
    const inviter = isMember(member.offeredBy) ? await accounts.member(member.offeredBy) : null
    const use = {
      type: 'UseInvitation',
      ...ids,
      proof: { tokenHash: hashSecret(token) },
      session,
      inviter,
      now,
    } as const
    const { events, refusal } = decideMember(slice, use)
    if (refusal !== null) throw signInFailed()
    await this.requireReplaceable(currentSecret, { account, key, member })
    const by = { accountId: account.id, keyId: key.id, environment: key.environment, actor: memberId }
    await this.recorder.record(events, by)
    const known = await this.knownKeys.session(account.id, session.id)
    // Another use of the same link was first on the log.
    if (known === null) throw signInFailed()
    return { secret, known }
  }

  /** Throws already-signed-in if the browser's session is that of somebody else. */
  private async requireReplaceable(currentSecret: string | null, next: SignedInAs): Promise<void> {
    const current = await this.findActive(currentSecret)
    if (current === null || personOf(current) === personOf(next)) return
    const [one, other] = await Promise.all([this.describe(current), this.describe(next)])
    throw new Problem('already-signed-in', {
      detail: `This browser is signed in to ${one}. The link or key signs in to ${other}.`,
    })
  }

  /** The name of the account, and the address of the member if it is one. */
  namesOf({ account, member }: Pick<SignedInAs, 'account' | 'member'>) {
    return Promise.all([
      this.personal.show(account.id, account.name),
      member && this.personal.show(member.id, member.email),
    ])
  }

  private async describe({ account, key, member }: SignedInAs): Promise<string> {
    const [name, email] = await this.namesOf({ account, member })
    const who = member === null ? `with the key ${key.name} (${key.id})` : `as ${email} (${member.id})`
    return `the account ${name} (${account.id}) ${who}`
  }

  /** Makes the browser send the secret of a session as its cookie. */
  setCookie(reply: FastifyReply, { secret, known: { session } }: SignedIn): void {
    const leftMs = session.expiresAt.getTime() - this.instance.now().getTime()
    void reply.header('set-cookie', this.address.setCookie(secret, leftMs))
  }

  /** The session of a request's cookie. Throws not-signed-in and account-suspended. */
  async find(request: FastifyRequest): Promise<KnownSession> {
    const secret = this.address.cookieOf(request)
    const known = await this.findActive(secret)
    if (known !== null) {
      requireNotSuspended(known.account)
      return known
    }
    const detail = secret === null ? 'The request has no session.' : 'The session is unknown or has ended.'
    throw new Problem('not-signed-in', { detail })
  }

  /** The sessions that can be used, the newest first: all of the account, or for a member without `admin` its own. */
  async list(of: KnownSession): Promise<ConsoleSession[]> {
    const now = this.instance.now()
    const account = await this.accountOf(of.account.id)
    const active = (account?.consoleSessions ?? []).filter((each) => isActive(each, now) && mayEnd(of, each))
    const known = await Promise.all(active.map(({ id }) => this.knownKeys.session(of.account.id, id)))
    return known.flatMap((each) => each?.session ?? []).toReversed()
  }

  /** Resolves once the session no longer works on this instance. Throws not-found. */
  async end(by: KnownSession, sessionId: string): Promise<void> {
    const count = await this.endMatching(by, (session) => session.id === sessionId)
    if (count === 0) throw noResource('session', sessionId)
  }

  /** Ends every session and link that `list` has. Resolves once none of them works on this instance. */
  async endAll(by: KnownSession): Promise<void> {
    const now = this.instance.now()
    await this.endMatching(by, ({ expiresAt }) => now < expiresAt)
  }

  /** Returns the number of sessions that match. */
  private async endMatching(
    of: KnownSession,
    matches: (session: ConsoleSession) => boolean,
  ): Promise<number> {
    const { key, session, member } = of
    const { id } = of.account
    const account = await this.accountOf(id)
    if (account === null) return 0
    const now = this.instance.now()
    const ended = account.consoleSessions.filter((each) => matches(each) && mayEnd(of, each))
    const events = ended.flatMap(
      ({ id: sessionId }) => decideConsole(account, { type: 'EndConsoleSession', sessionId, now }).events,
    )
    const actor = member?.id ?? session.id
    await this.recorder.record(events, { accountId: id, keyId: key.id, environment: key.environment, actor })
    return ended.length
  }

  private async useOfLink(accountId: AccountId, secret: string) {
    const linkHash = hashSecret(secret)
    const account = await this.accountOf(accountId)
    const link = account?.consoleSessions.find((each) => each.secretHash === linkHash)
    if (account === null || link === undefined) throw signInFailed()
    requireLinksAndKeys(account)
    const known = await readParties(this.views.accounts, account, link)
    if (known === null || !isOfActive(known, this.instance.now())) throw signInFailed()
    const { key, member } = known
    requireNotSuspended(account)
    return { account, key, member, command: { type: 'UseConsoleLink', linkHash } as const }
  }

  private async useOfKey(secret: string) {
    const secretHash = hashSecret(secret)
    const known = await this.knownKeys.find(secretHash)
    if (known === null || !isValidSecret(known.key, secretHash, this.instance.now())) throw signInFailed()
    const { account, key, member } = known
    if (isOrphaned(key, member)) throw signInFailed()
    requireNotSuspended(account)
    requireLinksAndKeys(account)
    requireApiAccess(this.plans.of(account))
    requireScope({ scopes: scopesOfKey(key, member) }, ['admin'])
    // A personal key starts a session of its member.
    const ids = { sessionId: mintId('ses'), startedBy: key.id, memberId: member?.id ?? null }
    const command = { type: 'StartConsoleSession', ...ids, isIdentified: false } as const
    return { account, key, member, command }
  }

  /** The session with that secret; null if there is none, or it has ended. */
  private async findActive(secret: string | null): Promise<KnownSession | null> {
    const [, accountId = ''] = SECRET.exec(secret ?? '') ?? []
    if (secret === null || !isId('acc', accountId)) return null
    const secretHash = hashSecret(secret)
    const account = await this.accountOf(accountId)
    const session = account?.consoleSessions.find((each) => each.secretHash === secretHash)
    return session === undefined ? null : this.knownKeys.session(accountId, session.id)
  }

  private accountOf(accountId: AccountId): Promise<Account | null> {
    return this.views.readAccounts((accounts) => accounts.account(accountId))
  }

  /** Resolves once the change is durable and applies on this instance. */
  private async execute(
    account: Account,
    command: ConsoleCommand,
    by: Omit<Attribution, 'accountId'>,
  ): Promise<Decision<ConsoleEvent, ConsoleRefusal>> {
    const decision = decideConsole(account, command)
    await this.recorder.record(decision.events, { ...by, accountId: account.id })
    return decision
  }
}

export function secretOf(id: AccountId | MemberId, bytes: Uint8Array): string {
  return `${id}.${Buffer.from(bytes).toString('base64url')}`
}

function signInFailed(): Problem {
  return new Problem('sign-in-failed', {
    detail: 'The link has been used or has expired, or the key is not valid.',
  })
}

/** Throws sign-in-with-provider. */
function requireLinksAndKeys({ id, requiresProvider }: Account): void {
  if (!requiresProvider) return
  throw new Problem('sign-in-with-provider', {
    detail: `The account ${id} accepts neither links nor keys to sign in.`,
  })
}

type StartCommand =
  | Omit<Extract<ConsoleCommand, { type: 'UseConsoleLink' }>, 'secretHash' | 'now'>
  | Omit<Extract<ConsoleCommand, { type: 'StartConsoleSession' }>, 'secretHash' | 'now'>

type SignedInAs = Pick<KnownSession, 'account' | 'key' | 'member'>

/** Different for each member and for each key. */
function personOf({ account, key, member }: SignedInAs): string {
  return `${account.id} ${member?.id ?? key.id}`
}

/** Whether somebody who is signed in may see and end a session: administrators all but those of owners. */
function mayEnd({ member, account }: KnownSession, { memberId }: ConsoleSession): boolean {
  if (member !== null && member.id === memberId) return true
  if (memberId !== null && account.owners.includes(memberId)) return member?.role === 'owner'
  return member === null || scopesOfMember(member).includes('admin')
}
