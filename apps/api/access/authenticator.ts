import type { FastifyRequest } from 'fastify'
import { isInForce, type ApiKey, type Account } from '#libs/domain/account/account.js'
import { isMistyped, type Scope } from '#libs/domain/account/api-key.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Plan } from '#libs/domain/account/plan.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/domain/account/secret-hash.js'
import { pathOf } from '../http/list-pages.js'
import { Problem } from '../http/problems.js'
import type { Plans } from './plans.js'
import type { Views } from '../http/views.js'

/** Who asks: what a valid key stands for. */
export interface Principal {
  accountId: AccountId
  keyId: KeyId
  environment: string
  scopes: readonly Scope[]
  /** As it is for this account. */
  plan: Plan
  /** What the key may ask for, sustained. */
  requestsPerMinute: number
  /** What the request gives as the password of the inbox that it is about. */
  inboxPassword: string | null
  /** The inbox that the request is about, once it has been found: usage is counted under it and its labels. */
  subject: Pick<Inbox, 'id' | 'labels'> | null
}

const PRINCIPAL = Symbol('principal')

/** The principal of a request that was authenticated. */
export function principalOf(request: FastifyRequest): Principal | null {
  return (request as { [PRINCIPAL]?: Principal })[PRINCIPAL] ?? null
}

/** The secret that a request was authenticated with, or would be: null if it gives none that could be one. */
export function bearerSecretOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, secret = null] = /^bearer +(\S{1,300})$/i.exec(headers.authorization ?? '') ?? []
  return secret
}

export interface AuthenticatorOptions {
  keys: KnownKeys
  plans: Plans
  keyUse: Pick<KeyUse, 'touch'>
  now: () => Date
}

/** Bearer tokens as in RFC 6750, checked before anything else of a request is read. */
export class Authenticator {
  constructor(private readonly options: AuthenticatorOptions) {}

  /**
   * Throws a 401 if a path under /v1, known or not, comes without a valid key. A wait or a stream authenticates again
   * while it is open: the key's current scopes then apply, and the request keeps the inbox that it is about.
   */
  async authenticate(request: FastifyRequest): Promise<void> {
    const route = request.routeOptions.url ?? pathOf(request)
    if (!/^\/v1(\/|$)/.test(route)) return
    const caller = await this.callerOf(request)
    const principal: Principal = { ...caller, subject: principalOf(request)?.subject ?? null }
    Object.assign(request, { [PRINCIPAL]: principal })
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
    const { keys, plans, keyUse, now } = this.options
    const secretHash = hashSecret(secret)
    const known = await keys.find(secretHash)
    if (known === null) {
      throw invalidKey(
        isMistyped(secret) ? 'The key is mistyped: its checksum is not right.' : 'The key is not known.',
      )
    }
    const { account, key } = known
    if (!isInForce(key, secretHash, now())) throw revokedKey(key)
    const { id: keyId, accountId, environment, scopes, rateLimit } = key
    keyUse.touch(keyId, now())
    const plan = plans.of(account)
    const requestsPerMinute = Math.min(rateLimit ?? Infinity, plan.requestsPerMinute)
    const given = headers['mayfly-inbox-password']
    const inboxPassword = typeof given === 'string' ? given : null
    return { keyId, accountId, environment, scopes, plan, requestsPerMinute, inboxPassword }
  }
}

/** The challenge of RFC 6750, section 3, to who sent a key that opens nothing. */
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
export interface KnownKey {
  account: Account
  key: ApiKey
}

interface Look {
  /** In milliseconds of a clock that never goes back. */
  beganAtMs: number
  found: Promise<KnownKey | null>
}

/** However many signals are lost: what was changed is in force everywhere after that. */
const OLDEST_MS = 500
const MAX_LOOKS = 10_000

/**
 * Looks keys up by the hash of a secret, and remembers what was found for a moment, so that a busy key costs two looks
 * a second and not several for each request. What is not found is looked up each time: a new key works at once.
 */
export class KnownKeys {
  /** In the order of their beginning, which is that of their end. */
  private readonly looks = new Map<string, Look>()

  constructor(private readonly views: Pick<Views, 'accounts' | 'readComplete'>) {}

  /**
   * Null if no key ever had such a secret. Throws catching-up if that, or whether the key has been revoked since,
   * can't be told; rejects as the views do.
   */
  find(secretHash: string): Promise<KnownKey | null> {
    const nowMs = performance.now()
    const remembered = this.looks.get(secretHash)
    if (remembered !== undefined && nowMs - remembered.beganAtMs < OLDEST_MS) return remembered.found
    const found = this.views.readComplete('account-events', () => this.views.accounts.keyByHash(secretHash))
    const look: Look = { beganAtMs: nowMs, found }
    this.looks.delete(secretHash)
    this.looks.set(secretHash, look)
    this.dropOldest(nowMs)
    const forget = () => {
      if (this.looks.get(secretHash) === look) this.looks.delete(secretHash)
    }
    found.then((known) => {
      if (known === null) forget()
    }, forget)
    return found
  }

  /** To be called when something of an account or a key has changed. */
  forgetAll(): void {
    this.looks.clear()
  }

  private dropOldest(nowMs: number): void {
    for (const [secretHash, { beganAtMs }] of this.looks) {
      if (this.looks.size <= MAX_LOOKS && nowMs - beganAtMs < OLDEST_MS) return
      this.looks.delete(secretHash)
    }
  }
}
