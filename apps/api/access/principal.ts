import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
  type Type,
} from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyRequest } from 'fastify'
import { allows, givableScopes, withImplied, type Plan, type Scope } from '#libs/domain/account/access.js'
import type { Account } from '#libs/domain/account/account.js'
import { scopesOfMember, type Actor, type Member } from '#libs/domain/account/member.js'
import type { AccountId, ConsoleSessionId, InboxId, KeyId } from '#libs/domain/ids/typeid.js'
import type { Fault } from '#libs/domain/inbox/fault.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { noResource, Problem, planLacksApiAccess } from '../http/problems.js'

/*
 * Authorization: who the caller of a request is, and the guard that checks the scopes that a handler requires.
 */

/** The caller of a request: its key, token or session, with the account, the environment and the permissions. */
export interface Principal {
  accountId: AccountId
  /** The key that usage is attributed to: the caller's, or the one that its token or session was made with. */
  keyId: KeyId
  environment: string
  scopes: readonly Scope[]
  /** With the account's own limits. */
  plan: Plan
  /** The faults on purpose of inboxes that the caller creates. */
  defaultFaults: readonly Fault[]
  requestsPerMinute: number
  /** Of all callers of the account together; null without such a limit. */
  accountRequestsPerMinute: number | null
  /** What requests are counted by: the id of the key, the token or the session. */
  countedBy: string
  /** Who is signed in, or whose personal key it is; null for a service key, an inbox token, or a session without a member. */
  member: Member | null
  /** Who causes the events of the request, if not the key itself: the id of the member, the token or the session. */
  actor: string | null
  /** Waits and streams of the caller end then; null if they have no end. */
  expiresAt: Date | null
  /** The only inbox that the caller can access; null for all of the environment. */
  inboxId: InboxId | null
  /** The session of the console; null for a key or an inbox token. */
  sessionId: ConsoleSessionId | null
  inboxPassword: string | null
  /** The inbox of the request, once it has been found. Usage is counted by it and its labels. */
  subject: Pick<Inbox, 'id' | 'labels'> | null
}

/** The parts of a principal that only members, inbox tokens and sessions have. */
export const KEY_ALONE = { actor: null, member: null, inboxId: null, sessionId: null } as const

/** Either scope allows a key to read inboxes and their mail. */
export const READERS: [Scope, Scope] = ['inboxes', 'read']

const PRINCIPAL = Symbol('principal')

/** Null if the request is not authenticated. */
export function principalOf(request: FastifyRequest): Principal | null {
  return (request as { [PRINCIPAL]?: Principal })[PRINCIPAL] ?? null
}

export function setPrincipal(request: FastifyRequest, principal: Principal): void {
  Object.assign(request, { [PRINCIPAL]: principal })
}

/** The caller of a request to a handler that requires a scope. */
export function callerOf(request: FastifyRequest): Principal {
  const principal = principalOf(request)
  if (principal === null) throw new Error('a handler requires a scope, but its path requires no key')
  return principal
}

const REQUIRED_SCOPES = 'required-scopes'

/**
 * The handler, or each one of the controller without scopes of its own, requires a key with one of these scopes. Every
 * handler under /v1 has some; the others, such as /healthz, require no key.
 */
export function RequireScope(...scopes: [Scope, ...Scope[]]): MethodDecorator & ClassDecorator {
  return SetMetadata(REQUIRED_SCOPES, scopes)
}

/** The scopes of which a handler requires one; null if it requires no key. */
export function scopesOf(reflector: Reflector, declaredAt: [Handler, Type]): readonly Scope[] | null {
  return reflector.getAllAndOverride<readonly Scope[] | undefined>(REQUIRED_SCOPES, declaredAt) ?? null
}

export type Handler = ReturnType<ExecutionContext['getHandler']>

/** Any member who is signed in may call the handlers, which limit those without their scope to what is their own. */
export const AllowMembers = Reflector.createDecorator()

/** The handlers also need the permission `content:read` of a member, since they send mail or show it. */
export const RequireContent = Reflector.createDecorator()

/**
 * The handler accepts inbox tokens too, if they have one of its scopes: `read`, or `inboxes` for a token with the access
 * `owner`. It finds its inbox with `Inboxes.find`, which limits the token to its own.
 */
export const AcceptInboxTokens = Reflector.createDecorator()

export function acceptsInboxTokens(reflector: Reflector, handler: Handler): boolean {
  return reflector.get(AcceptInboxTokens, handler) !== undefined
}

/** The caller, as an argument of a handler that requires a scope. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): Principal =>
  callerOf(context.switchToHttp().getRequest<FastifyRequest>()),
)

/**
 * Refuses keys without a scope that the handler requires, and inbox tokens if it does not accept them: 403 with the
 * challenge of RFC 6750, section 3.
 */
@Injectable()
export class ScopeGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const handler = context.getHandler()
    const declaredAt: [Handler, Type] = [handler, context.getClass()]
    const required = scopesOf(this.reflector, declaredAt)
    if (required === null) return true
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    requireInboxOfToken(request)
    const { member, sessionId, plan, scopes } = callerOf(request)
    const isForMembers = this.reflector.getAllAndOverride(AllowMembers, declaredAt) !== undefined
    if (isForMembers && member !== null && sessionId !== null) requireApiAccess(plan)
    else requireAllowed(request, required)
    const needsContent = this.reflector.getAllAndOverride(RequireContent, declaredAt) !== undefined
    if (needsContent && member !== null && !allows(scopes, READERS)) {
      throw missingScope('A member needs the permission content:read for this request.', READERS)
    }
    if (!acceptsInboxTokens(this.reflector, handler)) requireKey(request, required)
    return true
  }
}

/** Throws a 403 if the plan has no API access, or the key has none of the scopes. */
export function requireAllowed(request: FastifyRequest, required: readonly Scope[]): void {
  const caller = callerOf(request)
  requireApiAccess(caller.plan)
  requireScope(caller, required)
}

/** Throws not-found if the path has another inbox than that of the caller's inbox token. */
function requireInboxOfToken(request: FastifyRequest): void {
  const own = callerOf(request).inboxId
  const { inboxId } = request.params as { inboxId?: string }
  if (own !== null && inboxId !== undefined && inboxId !== own) throw noResource('inbox', inboxId)
}

/** Throws missing-scope if the caller has an inbox token instead of a key. */
export function requireKey(request: FastifyRequest, required: readonly Scope[]): void {
  if (callerOf(request).inboxId !== null) {
    throw missingScope('An inbox token cannot make this request. Use an API key.', required)
  }
}

/** Throws plan-lacks-api-access. */
export function requireApiAccess(plan: Plan): void {
  if (!plan.hasApiAccess) throw planLacksApiAccess(plan.name)
}

/** Throws missing-scope if the key has none of the scopes. Also for handlers whose scopes depend on what they find. */
export function requireScope({ scopes }: Pick<Principal, 'scopes'>, required: readonly Scope[]): void {
  if (!allows(scopes, required)) {
    throw missingScope(`The key needs one of the scopes ${required.join(', ')}.`, required)
  }
}

/** The caller as the author of changes, with what it may give to keys and members. */
export function actorOf({ member, keyId, scopes }: Principal, { owners }: Account): Actor {
  if (member !== null)
    return { by: member.id, isOwner: member.role === 'owner', mayGive: mayGive(scopes, member) }
  // Until the account has an owner, an administrator's key can invite the first one.
  const isOwner = scopes.includes('operator') || owners.length === 0
  return { by: keyId, isOwner, mayGive: mayGive(scopes, null) }
}

/** Throws missing-scope if the caller may not give all of these scopes to a key. */
export function requireMayGive({ member, scopes }: Principal, wanted: readonly Scope[]): void {
  const givable = mayGive(scopes, member)
  const readsMail = allows(givable, READERS)
  // A key with the scope admin can issue others, which may read mail.
  const missing = wanted.filter((scope) => !givable.includes(scope) || (scope === 'admin' && !readsMail))
  if (missing.length === 0) return
  const detail = `The caller may not give the scope ${missing.join(', ')}, or the secret of a key with it.`
  throw missingScope(detail, missing)
}

function mayGive(scopes: readonly Scope[], member: Member | null): readonly Scope[] {
  if (member === null) return givableScopes(scopes)
  return withImplied(scopes.includes('admin') ? scopesOfMember(member) : scopes)
}

export function missingScope(detail: string, required: readonly Scope[]): Problem {
  const scope = required.length === 0 ? '' : `, scope="${required.join(' ')}"`
  const challenge = `Bearer error="insufficient_scope"${scope}`
  return new Problem('missing-scope', { detail, headers: { 'www-authenticate': challenge } })
}
