import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyRequest } from 'fastify'
import { allows, type Scope } from '#libs/domain/account/api-key.js'
import { Problem } from '../http/problems.js'
import { principalOf, type Principal } from './authenticator.js'

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
export function requireAllowed(request: FastifyRequest, wanted: readonly Scope[]): void {
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
