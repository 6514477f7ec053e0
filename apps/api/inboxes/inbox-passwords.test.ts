import { memoryRateLimits } from '#libs/ports/rate-limit/memory-rate-limits.js'
import { RateLimitsUnavailableError, type RateLimits } from '#libs/ports/rate-limit/rate-limits.js'
import { planNamed } from '#libs/domain/account/account.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Principal } from '../access/principal.js'
import { Throttle } from '../access/request-limits.js'
import { Problem } from '../http/problems.js'
import { InboxPasswords } from './inbox-passwords.js'

const PASSWORD = 'the right password'
const inboxId = idFromBytes('inb', Buffer.alloc(16, 1))

function principal(key: number, inboxPassword: string | null): Principal {
  const [accountId, keyId] = [idFromBytes('acc', Buffer.alloc(16)), idFromBytes('key', Buffer.alloc(16, key))]
  const scopes = ['inboxes'] as const
  return {
    accountId,
    keyId,
    environment: 'staging',
    scopes,
    plan: planNamed('pro'),
    defaultFaults: [],
    requestsPerMinute: 1,
    accountRequestsPerMinute: null,
    inboxPassword,
    subject: null,
    ...{ countedBy: keyId, actor: null, expiresAt: null, inboxId: null, member: null, sessionId: null },
  }
}

describe('the password of an inbox', () => {
  const check = (limits: RateLimits) => {
    const passwords = new InboxPasswords(new Throttle(limits, () => undefined))
    return async (key: number, password: string | null): Promise<string> => {
      try {
        await passwords.check(principal(key, password), inboxId, hashSecret(PASSWORD))
        return 'right'
      } catch (error) {
        if (error instanceof Problem) return error.code
        throw error
      }
    }
  }

  it('is required, and checked', async () => {
    const send = check(memoryRateLimits())
    expect(await send(1, null)).toBe('inbox-password-required')
    expect(await send(1, '')).toBe('inbox-password-required')
    expect(await send(1, 'a wrong password')).toBe('inbox-password-invalid')
    expect(await send(1, PASSWORD)).toBe('right')
  })

  it('can be guessed ten times a minute by all keys together; a key that has not guessed is not locked out', async () => {
    const send = check(memoryRateLimits())
    for (let guess = 0; guess < 10; guess += 1) {
      expect(await send(1 + (guess % 2), 'a wrong password')).toBe('inbox-password-invalid')
    }
    const locked = 'too-many-password-attempts'
    for (const key of [1, 2]) expect(await send(key, PASSWORD)).toBe(locked)
    expect(await send(3, PASSWORD)).toBe('right')
    expect(await send(3, 'a wrong password')).toBe(locked)
    expect(await send(3, PASSWORD)).toBe(locked)
    expect(await send(4, PASSWORD)).toBe('right')
  })

  it('is also checked if attempts can not be counted', async () => {
    const unavailable = () => Promise.reject(new RateLimitsUnavailableError('unavailable'))
    const send = check({ consume: unavailable, charge: unavailable, peek: unavailable })
    expect(await send(1, 'a wrong password')).toBe('inbox-password-invalid')
    expect(await send(1, PASSWORD)).toBe('right')
  })
})
