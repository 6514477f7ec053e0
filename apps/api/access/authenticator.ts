import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { isInForce, type ApiKey, type Account } from '#libs/domain/account/account.js'
import {
  type Plan,
  planWith,
  unknownPlan,
  type PlanTable,
  isMistyped,
  type Scope,
  allows,
} from '#libs/domain/account/access.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { pathOf } from '../http/list-pages.js'
import { Problem } from '../http/problems.js'
import type { Views } from '../http/views.js'
import type { Logger } from 'pino'
import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common'
import { Reflector } from '@nestjs/core'

/** The plans of this installation, and which of them holds for an account. */
export class Plans {
  /** Names of plans that are not configured and were logged: each is logged once. */
  private readonly missed = new Set<string>()

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
    if (!this.missed.has(name)) {
      this.missed.add(name)
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
    return plan && planWith(plan, limits)
  }
}

/** The caller: what a valid key stands for. */
export interface Principal {
  accountId: AccountId
  keyId: KeyId
  environment: string
  scopes: readonly Scope[]
  /** With the account's own limits. */
  plan: Plan
  /** The sustained rate that the key may use. */
  requestsPerMinute: number
  /** The password that the request sends for its inbox. */
  inboxPassword: string | null
  /** The inbox that the request is about, once it has been found: usage is counted under it and its labels. */
  subject: Pick<Inbox, 'id' | 'labels'> | null
}

const PRINCIPAL = Symbol('principal')

/** The principal of a request that was authenticated. */
export function principalOf(request: FastifyRequest): Principal | null {
  return (request as { [PRINCIPAL]?: Principal })[PRINCIPAL] ?? null
}

/** The secret in a request's header Authorization; null if there is none, or none of that form. */
export function bearerSecretOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, secret = null] = /^bearer +(\S{1,300})$/i.exec(headers.authorization ?? '') ?? []
  return secret
}

/** Bearer tokens as in RFC 6750, checked before anything else of a request is read. */
export class Authenticator {
  constructor(
    private readonly keys: KnownKeys,
    private readonly plans: Plans,
    private readonly keyUse: Pick<KeyUse, 'touch'>,
    private readonly now: () => Date,
  ) {}

  /**
   * Throws a 401 if a request to a path under /v1, known or not, has no valid key.
   */
  async authenticate(request: FastifyRequest): Promise<void> {
    const route = request.routeOptions.url ?? pathOf(request)
    if (!/^\/v1(\/|$)/.test(route)) return
    const caller = await this.callerOf(request)
    const principal: Principal = { ...caller, subject: principalOf(request)?.subject ?? null }
    Object.assign(request, { [PRINCIPAL]: principal })
  }

  /**
   * Authenticates the request of a wait or a stream again while it is open. The key's current scopes then apply, and the
   * request keeps the inbox that it is about. Throws a 401 or 403 if the key may no longer make the request.
   */
  async authenticateAgain(request: FastifyRequest, scopes: readonly Scope[]): Promise<void> {
    await this.authenticate(request)
    requireAllowed(request, scopes)
  }

  private async callerOf(request: FastifyRequest): Promise<Omit<Principal, 'subject'>> {
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
      throw invalidKey('The key is mistyped: its checksum is not right.')
    }
    if (known === null) throw invalidKey('The key is not known.')
    const { account, key } = known
    const now = this.now()
    if (!isInForce(key, secretHash, now)) throw revokedKey(key)
    const { id: keyId, accountId, environment, scopes, rateLimit } = key
    this.keyUse.touch(keyId, now)
    const plan = this.plans.of(account)
    const requestsPerMinute = Math.min(rateLimit ?? Infinity, plan.requestsPerMinute)
    const given = headers['mayfly-inbox-password']
    const inboxPassword = typeof given === 'string' ? given : null
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
      ? `The key ${id} has another secret by now, and the grace of this one is over.`
      : `The key ${id} was revoked at ${revokedAt.toISOString()}.`
  return new Problem('revoked-api-key', { detail, headers: INVALID_TOKEN })
}

/** A key as the views have it, with its account. */
interface KnownKey {
  account: Account
  key: ApiKey
}

/** However many signals are lost: a change of a key is in force everywhere after this time. */
const OLDEST_MS = 500
const MAX_LOOKUPS = 10_000

/**
 * Looks keys up by the hash of a secret, and remembers what was found for a moment, so that a busy key costs two lookups
 * a second instead of several for each request. A key that was not found is looked up each time: a new key works at once.
 */
export class KnownKeys {
  private readonly lookups = new LRUCache<string, Promise<KnownKey | null>>({
    max: MAX_LOOKUPS,
    ttl: OLDEST_MS,
  })

  constructor(private readonly views: Pick<Views, 'readAccounts'>) {}

  /**
   * Null if no key ever had such a secret. Throws catching-up if that, or whether the key has been revoked since,
   * is not known; rejects as the views do.
   */
  find(secretHash: string): Promise<KnownKey | null> {
    const remembered = this.lookups.get(secretHash)
    if (remembered !== undefined) return remembered
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

  /** To be called when an account or a key has changed. */
  forgetAll(): void {
    this.lookups.clear()
  }
}

const SCOPES_WANTED = 'scopes-wanted'

/** The handler needs a key with one of these scopes. A handler without it needs no key. */
export function NeedsScope(...scopes: [Scope, ...Scope[]]): MethodDecorator {
  return SetMetadata(SCOPES_WANTED, scopes)
}

/** The scopes of which a handler's caller needs one; null if it needs no key. */
export function scopesOf(reflector: Reflector, handler: Handler): readonly Scope[] | null {
  return reflector.get<readonly Scope[] | undefined>(SCOPES_WANTED, handler) ?? null
}

type Handler = ReturnType<ExecutionContext['getHandler']>

/** The caller of a handler that needs a scope. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): Principal =>
  callerOf(context.switchToHttp().getRequest<FastifyRequest>()),
)

/** Refuses keys without the scope that a handler needs: 403 with the challenge of RFC 6750, section 3. */
@Injectable()
export class ScopeGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const wanted = scopesOf(this.reflector, context.getHandler())
    if (wanted !== null) requireAllowed(context.switchToHttp().getRequest<FastifyRequest>(), wanted)
    return true
  }
}

/** Throws the 403 of a caller whose plan has no API access, or whose key has none of the scopes. */
function requireAllowed(request: FastifyRequest, wanted: readonly Scope[]): void {
  const principal = callerOf(request)
  const { plan } = principal
  if (!plan.hasApiAccess) {
    throw new Problem('plan-lacks-api-access', { detail: `The plan ${plan.name} has no API access.` })
  }
  requireScope(principal, wanted)
}

/** Throws the 403 of a key that has none of the scopes, for handlers that know only later which scopes they need. */
export function requireScope({ scopes }: Principal, wanted: readonly Scope[]): void {
  if (!allows(scopes, wanted)) {
    throw missingScope(`The key needs one of the scopes ${wanted.join(', ')}.`, wanted)
  }
}

/** The 403 of a key that lacks a scope, with the scopes that would do. */
export function missingScope(detail: string, wanted: readonly Scope[]): Problem {
  const challenge = `Bearer error="insufficient_scope", scope="${wanted.join(' ')}"`
  return new Problem('missing-scope', { detail, headers: { 'www-authenticate': challenge } })
}

/** The caller of a request to a handler that needs a scope. */
export function callerOf(request: FastifyRequest): Principal {
  const principal = principalOf(request)
  if (principal === null) throw new Error('a handler needs a scope, but its path needs no key')
  return principal
}
