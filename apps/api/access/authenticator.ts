import type { FastifyRequest } from 'fastify'
import type { Account, ApiKey } from '#libs/account/account.js'
import { isMistyped } from '#libs/account/api-key.js'
import { PLANS, type Plan } from '#libs/account/plan.js'
import type { Scope } from '#libs/account/scope.js'
import type { AccountId, KeyId } from '#libs/typeid/typeid.js'
import { pathOf } from '../http/link.js'
import { Problem, unavailable } from '../http/problems.js'
import type { Views } from '../http/views.js'
import { hashSecret } from './credentials.js'

/** Who asks: what a valid key stands for. */
export interface Principal {
  accountId: AccountId
  keyId: KeyId
  environment: string
  scopes: readonly Scope[]
  plan: Plan
  /** What the key may ask for, sustained. */
  requestsPerMinute: number
  /** What the request gives as the password of the inbox that it is about. */
  inboxPassword: string | null
}

const PRINCIPAL = Symbol('principal')

/** The principal of a request that was authenticated. */
export function principalOf(request: FastifyRequest): Principal | null {
  return (request as { [PRINCIPAL]?: Principal })[PRINCIPAL] ?? null
}

/** Bearer tokens as in RFC 6750, judged before anything else of a request is read. */
export class Authenticator {
  constructor(private readonly views: Views) {}

  /** Throws a 401 where a path under /v1, known or not, comes without a valid key. */
  async authenticate(request: FastifyRequest): Promise<void> {
    const route = request.routeOptions.url ?? pathOf(request)
    if (!/^\/v1(\/|$)/.test(route)) return
    Object.assign(request, { [PRINCIPAL]: await this.principalFor(request) })
  }

  private async principalFor({ headers }: FastifyRequest): Promise<Principal> {
    const { authorization } = headers
    if (authorization === undefined) {
      throw new Problem('missing-api-key', {
        detail: 'The request has no API key.',
        headers: { 'www-authenticate': 'Bearer' },
      })
    }
    const [, secret] = /^bearer +(\S{1,300})$/i.exec(authorization) ?? []
    if (secret === undefined)
      throw invalidKey('The header Authorization does not have the form `Bearer <key>`.')
    const found = await this.find(secret)
    if (found !== null) {
      const { account, key } = found
      const { id: keyId, accountId, environment, scopes } = key
      const given = headers['mayfly-inbox-password']
      const inboxPassword = typeof given === 'string' ? given : null
      const plan = PLANS[account.plan]
      const { requestsPerMinute } = plan
      return { keyId, accountId, environment, scopes, plan, requestsPerMinute, inboxPassword }
    }
    throw invalidKey('The key is not known.')
  }

  /** Throws where the key is mistyped, or where it can't be told yet whether it is known. */
  private async find(secret: string): Promise<{ account: Account; key: ApiKey } | null> {
    const { accounts } = this.views
    const found = await accounts.keyByHash(hashSecret(secret))
    if (found !== null) return found
    if (isMistyped(secret)) throw invalidKey('The key is mistyped: its checksum is not right.')
    if (await this.views.isCatchingUp({ topic: 'account-events', partition: 0 })) {
      throw unavailable('catching-up', 'Whether the key is known can not be told yet.')
    }
    // Views that had been lost may have come back since.
    return accounts.keyByHash(hashSecret(secret))
  }
}

function invalidKey(detail: string): Problem {
  const headers = { 'www-authenticate': 'Bearer error="invalid_token"' }
  return new Problem('invalid-api-key', { detail, headers })
}
