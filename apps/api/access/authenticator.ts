import type { FastifyRequest } from 'fastify'
import { isMistyped, PUBLIC_ACCOUNT_ID, TOKEN_PLAN, type Scope } from '#libs/domain/account/access.js'
import { type ApiKey, defaultFaultsOf, isOrphaned, isValidSecret } from '#libs/domain/account/account.js'
import { mayUseEnvironment, scopesOfMember, scopesOfKey, type Member } from '#libs/domain/account/member.js'
import { keyState } from '#libs/domain/account/key-expiry.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { asOf } from '#libs/domain/inbox/inbox.js'
import { inboxIdOfToken, isLive } from '#libs/domain/inbox/token.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { pathOf } from '../http/list-pages.js'
import { requireNotSuspended, isTransient, Problem } from '../http/problems.js'
import type { Views } from '../views.js'
import type { ConsoleTokens, SessionIn } from './console-tokens.js'
import type { KnownKeys, Plans } from './key-lookup.js'
import {
  callerOf,
  KEY_ALONE,
  missingScope,
  principalOf,
  requireAllowed,
  setPrincipal,
  type Principal,
} from './principal.js'

/** The secret in a request's `Authorization: Bearer`; null without one. */
export function bearerSecretOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, secret = null] = /^bearer +(\S{1,300})$/i.exec(headers.authorization ?? '') ?? []
  return secret
}

/** The password in a request's `Authorization: Basic` (RFC 7617); null without one. */
function basicPasswordOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, encoded = ''] = /^basic +([\w+/=-]{1,1000})$/i.exec(headers.authorization ?? '') ?? []
  const [, password = null] = /^[^:]*:(\S{1,300})$/.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  return password
}

interface Scheme {
  paths: RegExp
  secretOf: (request: FastifyRequest) => string | null
  challenge: string
  form: string
}

/** Also of the console's requests for a link and for a ticket to show a mail. Its frame sends the ticket, and no key. */
const BEARER: Scheme = {
  paths: /^\/(v1(\/|$)|console\/(links|render)$)/,
  secretOf: bearerSecretOf,
  challenge: 'Bearer',
  form: '`Bearer <key>`',
}

/** Clients of Mailpit send a user name and a password, and some do so only after a challenge. */
const MAILPIT: Scheme = {
  paths: /^\/api\/v1(\/|$)/,
  secretOf: (request) => bearerSecretOf(request) ?? basicPasswordOf(request),
  challenge: 'Basic realm="Mayfly", Bearer',
  form: '`Bearer <key>`, or `Basic` with the key as the password',
}

/** Where the Model Context Protocol is served, if MAYFLY_MCP is set. */
export const MCP_PATH = '/mcp'

/**
 * Of a session without a member. An administrator can issue keys with these scopes, so it has no more access than its key.
 */
const ADMIN_SCOPES: readonly Scope[] = ['inboxes', 'audit', 'admin']
const CONSOLE_REQUESTS_PER_MINUTE = 1_200

export function scopesOfSession(member: Member | null): readonly Scope[] {
  return member === null ? ADMIN_SCOPES : scopesOfMember(member)
}

export interface AuthenticatorOptions {
  keys: KnownKeys
  views: Pick<Views, 'find' | 'inboxes'>
  consoleTokens: ConsoleTokens
  plans: Plans
  keyUse: Pick<KeyUse, 'touch'>
  now: () => Date
  settings: Pick<Settings, 'mailpitApi'>
}

/** Whose access `hasLostAccess` looks up. */
export type AccessChecks = 'none' | 'people' | 'all'

/** Authenticates requests by bearer tokens (RFC 6750), before their bodies are read. */
export class Authenticator {
  private readonly schemes: readonly Scheme[]

  constructor(private readonly options: AuthenticatorOptions) {
    this.schemes = options.settings.mailpitApi ? [BEARER, MAILPIT] : [BEARER]
  }

  /**
   * Throws a 401 if a request to a path of the API, known or not, or to /mcp if it is served, has no valid key or token.
   */
  async authenticate(request: FastifyRequest): Promise<void> {
    const { url } = request.routeOptions
    const path = url ?? pathOf(request)
    const scheme = url === MCP_PATH ? BEARER : this.schemes.find(({ paths }) => paths.test(path))
    if (scheme === undefined) return
    const found = await this.principalFor(request, scheme)
    setPrincipal(request, { ...found, subject: principalOf(request)?.subject ?? null })
  }

  /**
   * Authenticates the request of a wait or a stream again while it is open. The caller's current scopes then apply, and
   * the request keeps the inbox that it is about. A token of the console may have expired meanwhile, but not its session.
   * Throws a 401 or 403 if the caller may no longer make the request.
   */
  async reauthenticate(request: FastifyRequest, scopes: readonly Scope[]): Promise<void> {
    const { subject } = callerOf(request)
    setPrincipal(request, { ...(await this.current(request)), subject })
    requireAllowed(request, scopes)
  }

  /** How often keys, accounts or members have changed, as far as this instance knows. */
  get changes(): number {
    return this.options.keys.changes
  }

  /**
   * Whether the caller of an open wait or stream has lost access meanwhile: its key, token, session or membership has ended.
   * Whether a key has expired is always checked, a session or a member if `checks` is `people`, and a key only if it is `all`.
   */
  hasLostAccess(request: FastifyRequest, checks: AccessChecks): boolean | Promise<boolean> {
    const { sessionId, member, expiresAt } = callerOf(request)
    if (expiresAt !== null && expiresAt <= this.options.now()) return true
    const isPerson = sessionId !== null || member !== null
    if (checks === 'none' || (checks === 'people' && !isPerson)) return false
    return this.current(request).then(
      () => false,
      // If nothing can be read, that says nothing about the access. The request reports any other error.
      (error: unknown) => !isTransient(error),
    )
  }

  /** The caller of an open wait or stream as it is now. */
  private async current(request: FastifyRequest): Promise<Omit<Principal, 'subject'>> {
    const { sessionId, accountId, environment, inboxPassword } = callerOf(request)
    if (sessionId === null) return this.principalFor(request, BEARER)
    return { ...(await this.principalOfSession({ accountId, sessionId, environment })), inboxPassword }
  }

  private async principalFor(
    request: FastifyRequest,
    { secretOf, challenge, form }: Scheme,
  ): Promise<Omit<Principal, 'subject'>> {
    const { headers } = request
    if (headers.authorization === undefined) {
      throw new Problem('missing-api-key', {
        detail: 'The request has no API key.',
        headers: { 'www-authenticate': challenge },
      })
    }
    const secret = secretOf(request)
    if (secret === null) throw refused(`The header Authorization does not have the form ${form}.`)
    const password = headers['mayfly-inbox-password']
    const inboxPassword = typeof password === 'string' ? password : null
    return { ...(await this.principalWith(secret)), inboxPassword }
  }

  private principalWith(secret: string): Promise<Authenticated> {
    const session = this.options.consoleTokens.read(secret)
    if (session === 'expired') throw refused('The token of the console is unknown or has expired.')
    if (session !== null) return this.principalOfSession(session)
    const inboxId = inboxIdOfToken(secret)
    return inboxId === null ? this.principalOfKey(secret) : this.principalOfToken(inboxId, secret)
  }

  private async principalOfKey(secret: string): Promise<Authenticated> {
    const secretHash = hashSecret(secret)
    const { keys, plans, keyUse } = this.options
    const known = await keys.find(secretHash)
    if (known === null && isMistyped(secret)) throw refused('The key is mistyped: its checksum is wrong.')
    if (known === null) throw refused('The key is unknown.')
    const { account, key, member } = known
    const now = this.options.now()
    if (!isValidSecret(key, secretHash, now)) throw invalidKey(key, now)
    if (isOrphaned(key, member)) {
      throw refused(`The key ${key.id} belongs to somebody who is no longer a member.`, 'revoked-api-key')
    }
    requireNotSuspended(account)
    const { id: keyId, accountId, environment, rateLimit, expiresAt } = key
    const scopes = scopesOfKey(key, member)
    keyUse.touch(keyId, now)
    const plan = plans.of(account)
    return {
      ...{ keyId, accountId, environment, scopes, plan },
      ...{ ...KEY_ALONE, member, actor: member?.id ?? null },
      expiresAt,
      defaultFaults: defaultFaultsOf(account, environment),
      requestsPerMinute: Math.min(rateLimit ?? Infinity, plan.requestsPerMinute),
      accountRequestsPerMinute: plan.accountRequestsPerMinute,
      countedBy: keyId,
    }
  }

  private async principalOfSession({ accountId, sessionId, environment }: SessionIn): Promise<Authenticated> {
    const known = await this.options.keys.session(accountId, sessionId)
    if (known === null) throw refused('The session of the console has ended.')
    const { account, session, member } = known
    requireNotSuspended(account)
    if (member !== null && !mayUseEnvironment(member, environment)) {
      throw missingScope(`The member may not use the environment ${environment}.`, [])
    }
    const plan = this.options.plans.of(account)
    return {
      ...{ accountId, environment, keyId: session.keyId, expiresAt: session.expiresAt, inboxId: null },
      plan,
      defaultFaults: defaultFaultsOf(account, environment),
      scopes: scopesOfSession(member),
      requestsPerMinute: CONSOLE_REQUESTS_PER_MINUTE,
      accountRequestsPerMinute: plan.accountRequestsPerMinute,
      ...{ countedBy: sessionId, actor: member?.id ?? sessionId, member, sessionId },
    }
  }

  /** The secret of an inbox token has the id of its inbox. */
  private async principalOfToken(inboxId: InboxId, secret: string): Promise<Authenticated> {
    const { views, keys, plans } = this.options
    const row = await views.find(inboxId, () => views.inboxes.inbox(inboxId))
    const now = this.options.now()
    const inbox = row && asOf(row.inbox, now)
    const secretHash = hashSecret(secret)
    const token = inbox?.tokens.find(({ hash }) => hash === secretHash)
    if (!inbox || token === undefined) throw refused('The inbox token is unknown.')
    const { id, keyId, access, expiresAt, revokedAt } = token
    // After the end of its inbox, requests with the token are answered 410, like those with a key.
    const at = inbox.state === 'active' ? now : new Date(inbox.endedAt.getTime() - 1)
    if (!isLive(token, at)) {
      const [what, when] = revokedAt === null ? ['expired', expiresAt] : ['was revoked', revokedAt]
      throw refused(`The inbox token ${id} ${what} at ${when.toISOString()}.`, 'revoked-api-key')
    }
    const { accountId, environment } = inbox
    const account = await keys.account(accountId)
    if (account !== null) requireNotSuspended(account)
    return {
      ...{ accountId, environment, keyId, expiresAt, inboxId, member: null, sessionId: null },
      scopes: access === 'owner' ? ['inboxes'] : ['read'],
      plan: TOKEN_PLAN,
      defaultFaults: [],
      requestsPerMinute: TOKEN_PLAN.requestsPerMinute,
      // Visitors with a public inbox have an account together, but are strangers to each other.
      accountRequestsPerMinute:
        account === null || accountId === PUBLIC_ACCOUNT_ID
          ? null
          : plans.of(account).accountRequestsPerMinute,
      ...{ countedBy: id, actor: id },
    }
  }
}

/** A principal without what the request sends besides its secret. */
type Authenticated = Omit<Principal, 'subject' | 'inboxPassword'>

/** A 401 with the challenge of RFC 6750, section 3, for a secret that is not valid. */
function refused(detail: string, code: 'invalid-api-key' | 'revoked-api-key' = 'invalid-api-key'): Problem {
  return new Problem(code, { detail, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
}

function invalidKey(key: ApiKey, now: Date): Problem {
  const { id, revokedAt, expiresAt } = key
  const why = {
    revoked: `was revoked at ${revokedAt?.toISOString()}`,
    expired: `expired at ${expiresAt?.toISOString()}`,
    active: 'was rotated, and the grace period of this secret has ended',
  }[keyState(key, now)]
  return refused(`The key ${id} ${why}.`, 'revoked-api-key')
}
