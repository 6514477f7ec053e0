import {
  createParamDecorator,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyRequest } from 'fastify'
import { isMistyped } from '#libs/account/api-key.js'
import { PLANS, type Plan } from '#libs/account/plan.js'
import { allows, type Scope } from '#libs/account/scope.js'
import type { AccountId, KeyId } from '#libs/typeid/typeid.js'
import { Problem, unavailable } from '../http/problems.js'
import { Views } from '../http/views.js'
import { hashSecret } from './credentials.js'

/** Who asks: what a valid key stands for. */
export interface Principal {
  accountId: AccountId
  keyId: KeyId
  environment: string
  scopes: readonly Scope[]
  plan: Plan
}

const SCOPES_WANTED = 'scopes-wanted'
const PRINCIPAL = Symbol('principal')

/** The handler needs a key with one of these scopes. A handler without it needs no key. */
export function NeedsScope(...scopes: [Scope, ...Scope[]]): MethodDecorator {
  return SetMetadata(SCOPES_WANTED, scopes)
}

/** The principal of a request that passed the guard. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): Principal => {
  const principal = principalOf(context.switchToHttp().getRequest<FastifyRequest>())
  if (principal === null) throw new Error('a handler asks who calls, but needs no scope')
  return principal
})

export function principalOf(request: FastifyRequest): Principal | null {
  return (request as { [PRINCIPAL]?: Principal })[PRINCIPAL] ?? null
}

/** Bearer tokens as in RFC 6750; 401 and 403 with the challenge that its section 3 asks for. */
@Injectable()
export class AuthenticationGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly views: Views,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const wanted = this.reflector.get<readonly Scope[] | undefined>(SCOPES_WANTED, context.getHandler())
    if (wanted === undefined) return true
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    const principal = await this.authenticate(request)
    Object.assign(request, { [PRINCIPAL]: principal })
    if (!principal.plan.hasApiAccess) {
      throw new Problem('plan-lacks-api-access', {
        detail: `The plan ${principal.plan.name} has no API access.`,
      })
    }
    if (!allows(principal.scopes, wanted)) {
      throw new Problem('missing-scope', {
        detail: `The key needs one of the scopes ${wanted.join(', ')}.`,
        headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${wanted.join(' ')}"` },
      })
    }
    return true
  }

  private async authenticate({ headers: { authorization } }: FastifyRequest): Promise<Principal> {
    if (authorization === undefined) {
      throw new Problem('missing-api-key', {
        detail: 'The request has no API key.',
        headers: { 'www-authenticate': 'Bearer' },
      })
    }
    const [, secret] = /^bearer +(\S{1,300})$/i.exec(authorization) ?? []
    if (secret === undefined)
      throw invalidKey('The header Authorization does not have the form `Bearer <key>`.')
    const found = await this.views.accounts.keyByHash(hashSecret(secret))
    if (found !== null) {
      const { account, key } = found
      const { id: keyId, accountId, environment, scopes } = key
      return { keyId, accountId, environment, scopes, plan: PLANS[account.plan] }
    }
    if (isMistyped(secret)) throw invalidKey('The key is mistyped: its checksum is not right.')
    if (await this.views.isCatchingUp({ topic: 'account-events', partition: 0 })) {
      throw unavailable('catching-up', 'Whether the key is known can not be told yet.')
    }
    throw invalidKey('The key is not known.')
  }
}

function invalidKey(detail: string): Problem {
  const headers = { 'www-authenticate': 'Bearer error="invalid_token"' }
  return new Problem('invalid-api-key', { detail, headers })
}
