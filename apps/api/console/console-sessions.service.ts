import { randomBytes } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { isValidSecret, type Account } from '#libs/domain/account/account.js'
import { keyState } from '#libs/domain/account/key-expiry.js'
import {
  decideConsole,
  evolveSessions,
  isActive,
  type ConsoleCommand,
  type ConsoleEvent,
  type ConsoleRefusal,
  type ConsoleSession,
} from '#libs/domain/account/console-sessions.js'
import type { Decision } from '#libs/domain/event-sourcing/decision.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import type { Attribution } from '#libs/ports/event-log/cloud-event.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import { type Principal, requireApiAccess, requireScope } from '../access/principal.js'
import { KnownKeys, Plans, type KnownSession } from '../access/key-lookup.js'
import { rateLimited, Throttle } from '../access/request-limits.js'
import { Problem, unavailable, noResource, requireNotSuspended } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'

/** The secret of a link or of a session: the id of its account, so that no index is needed, and 256 random bits. */
const SECRET = /^(acc_[0-9a-z]{26})\.[\w-]{43}$/
const SECRET_BYTES = 32

/** Of one remote address. Secrets can't be guessed, but a configured key may be weak. */
const FAILED_SIGN_INS: RatePolicy = { name: 'failed-sign-ins', quota: 20, windowSeconds: 60 }

interface SignedIn {
  secret: string
  known: KnownSession
}

export type LinkCreator = Pick<Principal, 'accountId' | 'keyId' | 'environment' | 'actor'>

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
  ) {}

  /** Creates a link that starts one session. Only this answer has its secret. */
  async createLink(creator: LinkCreator, minting: Minting): Promise<{ secret: string; expiresAt: Date }> {
    const { accountId, keyId } = creator
    const sessionId = minting.id('ses')
    const secret = secretOf(accountId, minting.bytes(SECRET_BYTES))
    const facts = { sessionId, createdBy: keyId, linkHash: hashSecret(secret), now: this.instance.now() }
    const account = await this.accountOf(accountId)
    if (account === null) throw noResource('account', accountId)
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
   * plan-lacks-api-access for a valid key; and rate-limited if too many attempts from the address have failed.
   */
  async signIn(given: string, remoteAddress: string, currentSecret: string | null): Promise<SignedIn> {
    const counter = `console-sign-in:${remoteAddress}`
    const verdict = await this.throttle.peek(counter, [FAILED_SIGN_INS])
    if (verdict?.isAllowed === false) {
      const { quota } = FAILED_SIGN_INS
      throw rateLimited(
        verdict.next.refillsInMs,
        () => `${quota} attempts to sign in from this address have failed within a minute.`,
      )
    }
    try {
      return await this.start(given, currentSecret)
    } catch (error) {
      if (error instanceof Problem && error.code === 'sign-in-failed') {
        await this.throttle.consume(counter, [FAILED_SIGN_INS])
      }
      throw error
    }
  }

  private async start(given: string, currentSecret: string | null): Promise<SignedIn> {
    const [, accountId = ''] = SECRET.exec(given) ?? []
    const { account, key, command } = isId('acc', accountId)
      ? await this.useOfLink(accountId, given)
      : await this.useOfKey(given)
    const current = await this.findActive(currentSecret)
    if (current !== null && current.key.id !== key.id) throw alreadySignedIn(current, { account, key })
    const secret = secretOf(account.id, randomBytes(SECRET_BYTES))
    const secretHash = hashSecret(secret)
    const { id: keyId, environment } = key
    const start = { ...command, secretHash, now: this.instance.now() }
    const { events } = await this.execute(account, start, { keyId, environment })
    const [session] = events.reduce(evolveSessions, [])
    if (session === undefined) throw signInFailed()
    const shown = (await this.accountOf(account.id))?.consoleSessions.find(({ id }) => id === session.id)
    // Another use of the same link was first on the log. A session that is not shown was replaced by newer ones.
    if (shown !== undefined && shown.secretHash !== secretHash) throw signInFailed()
    return { secret, known: { account, key, session } }
  }

  /** The session of a cookie. Throws not-signed-in and account-suspended. */
  async find(secret: string | null): Promise<KnownSession> {
    const known = await this.findActive(secret)
    if (known !== null) {
      requireNotSuspended(known.account)
      return known
    }
    const detail = secret === null ? 'The request has no session.' : 'The session is unknown or has ended.'
    throw new Problem('not-signed-in', { detail })
  }

  /** The sessions of an account that can be used, the newest first. */
  list({ id }: Account): Promise<ConsoleSession[]> {
    const now = this.instance.now()
    return this.views.readAccounts(async (accounts) => {
      const [account, keys] = await Promise.all([accounts.account(id), accounts.activeKeys(id)])
      const keyIds = new Set(keys.map((key) => key.id))
      const isUsable = (session: ConsoleSession) => isActive(session, now) && keyIds.has(session.keyId)
      return (account?.consoleSessions ?? []).filter(isUsable).toReversed()
    })
  }

  /** Resolves once the session no longer works on this instance. Throws not-found. */
  async end(by: KnownSession, sessionId: string): Promise<void> {
    const count = await this.endThose(by, ({ id }) => id === sessionId)
    if (count === 0) throw noResource('session', sessionId)
  }

  /** Ends every session and link of an account. Resolves once none of them works on this instance. */
  async endAll(by: KnownSession): Promise<void> {
    const now = this.instance.now()
    await this.endThose(by, ({ expiresAt }) => now < expiresAt)
  }

  /** Returns the number of sessions that are meant. */
  private async endThose(
    { key, session, account: { id } }: KnownSession,
    isMeant: (session: ConsoleSession) => boolean,
  ): Promise<number> {
    const account = await this.accountOf(id)
    if (account === null) return 0
    const now = this.instance.now()
    const meant = account.consoleSessions.filter(isMeant)
    const events = meant.flatMap(
      ({ id: sessionId }) => decideConsole(account, { type: 'EndConsoleSession', sessionId, now }).events,
    )
    const by = { accountId: id, keyId: key.id, environment: key.environment, actor: session.id }
    await this.recorder.record(events, by)
    return meant.length
  }

  private async useOfLink(accountId: AccountId, secret: string) {
    const linkHash = hashSecret(secret)
    const account = await this.accountOf(accountId)
    const link = account?.consoleSessions.find((each) => each.secretHash === linkHash)
    if (account === null || link === undefined) throw signInFailed()
    const key = await this.views.accounts.key(link.keyId)
    if (key === null || keyState(key, this.instance.now()) !== 'active') throw signInFailed()
    requireNotSuspended(account)
    return { account, key, command: { type: 'UseConsoleLink', linkHash } as const }
  }

  private async useOfKey(secret: string) {
    const secretHash = hashSecret(secret)
    const known = await this.knownKeys.find(secretHash)
    if (known === null || !isValidSecret(known.key, secretHash, this.instance.now())) throw signInFailed()
    const { account, key } = known
    requireNotSuspended(account)
    requireApiAccess(this.plans.of(account))
    requireScope(key, ['admin'])
    const command = { type: 'StartConsoleSession', sessionId: mintId('ses'), startedBy: key.id } as const
    return { account, key, command }
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

function secretOf(accountId: AccountId, bytes: Uint8Array): string {
  return `${accountId}.${Buffer.from(bytes).toString('base64url')}`
}

function signInFailed(): Problem {
  return new Problem('sign-in-failed', {
    detail: 'The link has been used or has expired, or the key is not valid.',
  })
}

function alreadySignedIn(current: Pick<KnownSession, 'account' | 'key'>, other: typeof current): Problem {
  const nameOf = ({ account, key }: typeof current) =>
    `the account ${account.name} (${account.id}) with the key ${key.name}`
  return new Problem('already-signed-in', {
    detail: `This browser is signed in to ${nameOf(current)}. The link or key signs in to ${nameOf(other)}.`,
  })
}
