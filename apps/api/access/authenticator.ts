import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyRequest } from 'fastify'
import { allows, isMistyped, type Plan, type Scope } from '#libs/domain/account/access.js'
import { type ApiKey, isValidSecret } from '#libs/domain/account/account.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { pathOf } from '../http/list-pages.js'
import { Problem } from '../http/problems.js'
import type { KnownKeys, Plans } from './key-lookup.js'

/*
 * Authentication and authorization: from the key of a request to its principal, with the key's scopes and the
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

/** The password in a request's `Authorization: Basic` (RFC 7617); null without one. */
function basicPasswordOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, encoded = ''] = /^basic +([\w+/=-]{1,1000})$/i.exec(headers.authorization ?? '') ?? []
  const [, password = null] = /^[^:]*:(\S{1,300})$/.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  return password
}

/** How requests to some paths send their key. */
interface Scheme {
  paths: RegExp
  secretOf: (request: FastifyRequest) => string | null
  challenge: string
  form: string
}

const BEARER: Scheme = {
  paths: /^\/v1(\/|$)/,
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

/** Authenticates requests by bearer tokens (RFC 6750), before their bodies are read. */
export class Authenticator {
  private readonly schemes: readonly Scheme[]

  constructor(
    private readonly keys: KnownKeys,
    private readonly plans: Plans,
    private readonly keyUse: Pick<KeyUse, 'touch'>,
    private readonly now: () => Date,
    { mailpitApi }: Pick<Settings, 'mailpitApi'>,
  ) {
    this.schemes = mailpitApi ? [BEARER, MAILPIT] : [BEARER]
  }

  /**
   * Throws a 401 if a request to a path of the API, known or not, or to /mcp if it is served, has no valid key.
   */
  async authenticate(request: FastifyRequest): Promise<void> {
    const { url } = request.routeOptions
    const path = url ?? pathOf(request)
    const scheme = url === MCP_PATH ? BEARER : this.schemes.find(({ paths }) => paths.test(path))
    if (scheme === undefined) return
    const found = await this.principalFor(request, scheme)
    const principal: Principal = { ...found, subject: principalOf(request)?.subject ?? null }
    Object.assign(request, { [PRINCIPAL]: principal })
  }

  /**
   * Authenticates the request of a wait or a stream again while it is open. The key's current scopes then apply, and
   * the request keeps the inbox that it is about. Throws a 401 or 403 if the key may no longer make the request.
   */
  async reauthenticate(request: FastifyRequest, scopes: readonly Scope[]): Promise<void> {
    await this.authenticate(request)
    requireAllowed(request, scopes)
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
    if (secret === null) throw invalidKey(`The header Authorization does not have the form ${form}.`)
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
