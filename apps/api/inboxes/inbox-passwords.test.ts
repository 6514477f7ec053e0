import { memoryRateLimits } from '#libs/engines/embedded/rate-limit/memory-rate-limits.js'
import { RateLimitsUnavailableError, type RateLimits } from '#libs/ports/rate-limit/rate-limits.js'
import { planNamed } from '#libs/domain/account/account.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Principal } from '../access/authenticator.js'
import { Throttle } from '../access/request-limits.js'
import { Problem } from '../http/problems.js'
import { InboxPasswords } from './inbox-passwords.js'

const PASSWORD = 'the right one'
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
    requestsPerMinute: 1,
    inboxPassword,
    subject: null,
  }
}

describe('the password of an inbox', () => {
  const check = (limits: RateLimits) => {
    const passwords = new InboxPasswords(new Throttle({ limits, onUnavailable: () => undefined }))
    return async (key: number, given: string | null): Promise<string> => {
      try {
        await passwords.check(principal(key, given), inboxId, hashSecret(PASSWORD))
        return 'right'
      } catch (error) {
        if (error instanceof Problem) return error.code
        throw error
      }
    }
  }

  it('is asked for, and checked', async () => {
    const given = check(memoryRateLimits())
    expect(await given(1, null)).toBe('inbox-password-required')
    expect(await given(1, '')).toBe('inbox-password-required')
    expect(await given(1, 'a wrong one')).toBe('inbox-password-invalid')
    expect(await given(1, PASSWORD)).toBe('right')
  })

  it('is guessed ten times a minute by all keys together, which locks out none that has not guessed', async () => {
    const given = check(memoryRateLimits())
    for (let guess = 0; guess < 10; guess += 1) {
      expect(await given(1 + (guess % 2), 'a wrong one')).toBe('inbox-password-invalid')
    }
    const locked = 'too-many-password-attempts'
    for (const key of [1, 2]) expect(await given(key, PASSWORD)).toBe(locked)
    expect(await given(3, PASSWORD)).toBe('right')
    expect(await given(3, 'a wrong one')).toBe(locked)
    expect(await given(3, PASSWORD)).toBe(locked)
    expect(await given(4, PASSWORD)).toBe('right')
  })

  it('is checked as well where nobody can count', async () => {
    const away = () => Promise.reject(new RateLimitsUnavailableError('away'))
    const given = check({ consume: away, peek: away })
    expect(await given(1, 'a wrong one')).toBe('inbox-password-invalid')
    expect(await given(1, PASSWORD)).toBe('right')
  })
})
