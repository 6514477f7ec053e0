import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import {
  allows,
  isMistyped,
  planWithLimits,
  unknownPlan,
  type Plan,
  type PlanTable,
  type Scope,
} from '#libs/domain/account/access.js'
import { type Account, type ApiKey, isValidSecret } from '#libs/domain/account/account.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { pathOf } from '../http/list-pages.js'
import { Problem } from '../http/problems.js'
import type { Views } from '../http/views.js'

/*
 * Authentication and authorization: from the bearer token of a request to its principal, with the key's scopes and the
 * account's plan; and the guard that checks the scopes that a handler requires.
 */

/** The caller of a request: its key, with the account, the environment and the permissions of the key. */
export interface Principal {
  accountId: AccountId
  keyId: KeyId
  environment: string
  scopes: readonly Scope[]
  /** With the account's own limits. */
  plan: Plan
  /** The sustained rate limit of the key. */
  requestsPerMinute: number
  /** The password that the request sends for its inbox. */
  inboxPassword: string | null
  /** The inbox of the request, once it has been found. Usage is counted by it and its labels. */
  subject: Pick<Inbox, 'id' | 'labels'> | null
}

const PRINCIPAL = Symbol('principal')

/** The principal of a request; null if it is not authenticated. */
export function principalOf(request: FastifyRequest): Principal | null {
  return (request as { [PRINCIPAL]?: Principal })[PRINCIPAL] ?? null
}

/** The secret in a request's `Authorization: Bearer`; null without one. */
export function bearerSecretOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, secret = null] = /^bearer +(\S{1,300})$/i.exec(headers.authorization ?? '') ?? []
  return secret
}

/** Where the Model Context Protocol is served, if MAYFLY_MCP is set. */
export const MCP_PATH = '/mcp'

/** Authenticates requests by bearer tokens (RFC 6750), before their bodies are read. */
export class Authenticator {
  constructor(
    private readonly keys: KnownKeys,
    private readonly plans: Plans,
    private readonly keyUse: Pick<KeyUse, 'touch'>,
    private readonly now: () => Date,
  ) {}

  /**
   * Throws a 401 if a request to a path under /v1, known or not, or to /mcp if it is served, has no valid key.
   */
  async authenticate(request: FastifyRequest): Promise<void> {
    const { url } = request.routeOptions
    if (url !== MCP_PATH && !/^\/v1(\/|$)/.test(url ?? pathOf(request))) return
    const found = await this.principalFor(request)
    const principal: Principal = { ...found, subject: principalOf(request)?.subject ?? null }
    Object.assign(request, { [PRINCIPAL]: principal })
  }

  /**
   * Authenticates the request of a wait or a stream again while it is open. The key's current scopes then apply, and
   * the request keeps the inbox that it is about. Throws a 401 or 403 if the key may no longer make the request.
   */
  async authenticateAgain(request: FastifyRequest, scopes: readonly Scope[]): Promise<void> {
    await this.authenticate(request)
    requireAllowed(request, scopes)
  }

  private async principalFor(request: FastifyRequest): Promise<Omit<Principal, 'subject'>> {
    const { headers } = request
    if (headers.authorization === undefined) {
      throw new Problem('missing-api-key', {
        detail: 'The request has no API key.',
        headers: { 'www-authenticate': 'Bearer' },
      })
    }
    const secret = bearerSecretOf(request)
    if (secret === null) throw invalidKey('The header Authorization does not have the form `Bearer <key>`.')
    const secretHash = hashSecret(secret)
    const known = await this.keys.find(secretHash)
    if (known === null && isMistyped(secret)) {
      throw invalidKey('The key is mistyped: its checksum is wrong.')
    }
    if (known === null) throw invalidKey('The key is unknown.')
    const { account, key } = known
    const now = this.now()
    if (!isValidSecret(key, secretHash, now)) throw revokedKey(key)
    const { id: keyId, accountId, environment, scopes, rateLimit } = key
    this.keyUse.touch(keyId, now)
    const plan = this.plans.of(account)
    const requestsPerMinute = Math.min(rateLimit ?? Infinity, plan.requestsPerMinute)
    const password = headers['mayfly-inbox-password']
    const inboxPassword = typeof password === 'string' ? password : null
    return { keyId, accountId, environment, scopes, plan, requestsPerMinute, inboxPassword }
  }
}

/** The challenge of RFC 6750, section 3, for a key that is not valid. */
const INVALID_TOKEN = { 'www-authenticate': 'Bearer error="invalid_token"' }

function invalidKey(detail: string): Problem {
  return new Problem('invalid-api-key', { detail, headers: INVALID_TOKEN })
}

function revokedKey({ id, revokedAt }: ApiKey): Problem {
  const detail =
    revokedAt === null
      ? `The key ${id} was rotated, and the grace period of this secret has ended.`
      : `The key ${id} was revoked at ${revokedAt.toISOString()}.`
  return new Problem('revoked-api-key', { detail, headers: INVALID_TOKEN })
}

const REQUIRED_SCOPES = 'required-scopes'

/**
 * The handler requires a key with one of these scopes. Every handler under /v1 has this decorator; the others, such as
 * /healthz, require no key.
 */
export function RequireScope(...scopes: [Scope, ...Scope[]]): MethodDecorator {
  return SetMetadata(REQUIRED_SCOPES, scopes)
}

/** The scopes of which a handler requires one; null if it requires no key. */
export function scopesOf(reflector: Reflector, handler: Handler): readonly Scope[] | null {
  return reflector.get<readonly Scope[] | undefined>(REQUIRED_SCOPES, handler) ?? null
}

type Handler = ReturnType<ExecutionContext['getHandler']>

/** The caller, as an argument of a handler that requires a scope. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): Principal =>
  callerOf(context.switchToHttp().getRequest<FastifyRequest>()),
)

/** Refuses keys without a scope that the handler requires: 403 with the challenge of RFC 6750, section 3. */
@Injectable()
export class ScopeGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const required = scopesOf(this.reflector, context.getHandler())
    if (required !== null) requireAllowed(context.switchToHttp().getRequest<FastifyRequest>(), required)
    return true
  }
}

/** Throws a 403 if the plan has no API access, or the key has none of the scopes. */
function requireAllowed(request: FastifyRequest, required: readonly Scope[]): void {
  requireApiAccess(request)
  requireScope(callerOf(request), required)
}

/** Throws plan-lacks-api-access. */
export function requireApiAccess(request: FastifyRequest): void {
  const { plan } = callerOf(request)
  if (!plan.hasApiAccess) {
    throw new Problem('plan-lacks-api-access', { detail: `The plan ${plan.name} has no API access.` })
  }
}

/** Throws missing-scope if the key has none of the scopes. Also for handlers whose scopes depend on what they find. */
export function requireScope({ scopes }: Principal, required: readonly Scope[]): void {
  if (!allows(scopes, required)) {
    throw missingScope(`The key needs one of the scopes ${required.join(', ')}.`, required)
  }
}

/** The 403 for a key without the required scope; one of `required` is enough. */
export function missingScope(detail: string, required: readonly Scope[]): Problem {
  const challenge = `Bearer error="insufficient_scope", scope="${required.join(' ')}"`
  return new Problem('missing-scope', { detail, headers: { 'www-authenticate': challenge } })
}

/** The caller of a request to a handler that requires a scope. */
export function callerOf(request: FastifyRequest): Principal {
  const principal = principalOf(request)
  if (principal === null) throw new Error('a handler requires a scope, but its path requires no key')
  return principal
}

/** A key with its account, as read from the views. */
interface KnownKey {
  account: Account
  key: ApiKey
}

/** A changed key applies everywhere after this time, even if signals are lost. */
const MAX_AGE_MS = 500
const MAX_LOOKUPS = 10_000

/**
 * Finds keys by the hash of a secret, and caches them for half a second, so that a busy key costs two lookups a second
 * instead of several for each request. A hash without a key is not cached, so a new key works at once.
 */
export class KnownKeys {
  private readonly lookups = new LRUCache<string, Promise<KnownKey | null>>({
    max: MAX_LOOKUPS,
    ttl: MAX_AGE_MS,
  })

  constructor(private readonly views: Pick<Views, 'readAccounts'>) {}

  /**
   * Null if no key ever had this secret. Rejects with ViewsCatchingUpError if the views may lack the key or its
   * revocation, and with the errors of the views.
   */
  find(secretHash: string): Promise<KnownKey | null> {
    const cached = this.lookups.get(secretHash)
    if (cached !== undefined) return cached
    const found = this.views.readAccounts((accounts) => accounts.keyByHash(secretHash))
    this.lookups.set(secretHash, found)
    const forget = () => {
      if (this.lookups.peek(secretHash) === found) this.lookups.delete(secretHash)
    }
    found.then((known) => {
      if (known === null) forget()
    }, forget)
    return found
  }

  /** Must be called when an account or a key has changed. */
  forgetAll(): void {
    this.lookups.clear()
  }
}

/** The configured plans, and the plan of each account. */
export class Plans {
  /** Unknown plans that were logged. Each is logged once. */
  private readonly logged = new Set<string>()

  constructor(
    private readonly table: PlanTable,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  get names(): string[] {
    return [...this.table.keys()]
  }

  named(name: string): Plan | null {
    return this.table.get(name) ?? null
  }

  /** The plan of an account. If it is no longer configured, the account keeps its data but has no API access. */
  of(account: Pick<Account, 'plan' | 'limits'>): Plan {
    const plan = this.find(account)
    if (plan !== null) return plan
    const { plan: name } = account
    if (!this.logged.has(name)) {
      this.logged.add(name)
      this.logger.warn(
        { plan: name, configured: this.names },
        'accounts are on a plan that is not configured: they have no API access',
      )
    }
    return unknownPlan(name)
  }

  /** The plan of an account with the account's own limits; null if it is not configured. */
  find({ plan: name, limits }: Pick<Account, 'plan' | 'limits'>): Plan | null {
    const plan = this.named(name)
    return plan && planWithLimits(plan, limits)
  }
}
