import { timingSafeEqual } from 'node:crypto'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Principal } from '../access/authenticator.js'
import { secondsUntil, type Throttle } from '../access/request-limits.js'
import { Problem } from '../http/problems.js'

const HEADER = 'Mayfly-Inbox-Password'
const WINDOW_SECONDS = 60
/** For one inbox, by all keys. */
const WRONG_ONES: RatePolicy = { name: 'wrong-passwords', quota: 10, windowSeconds: WINDOW_SECONDS }
/** For one inbox, by one key. */
const OWN_WRONG_ONES: RatePolicy = { name: 'own-wrong-passwords', quota: 1, windowSeconds: WINDOW_SECONDS }

/**
 * Checks the passwords of protected inboxes. After ten wrong ones within a minute, further wrong ones are refused, and
 * from a key that sent one of them the right one too. A key that has sent no wrong password is not locked out by others,
 * so somebody with many keys has one more guess with each.
 */
export class InboxPasswords {
  constructor(private readonly throttle: Throttle) {}

  /**
   * `digest` is the hex SHA-256 of the right password. Throws a 403 for a wrong or missing one, and the 429
   * too-many-password-attempts.
   */
  async check({ inboxPassword: given, keyId }: Principal, inboxId: InboxId, digest: string): Promise<void> {
    if (given === null || given === '') {
      const detail = `The inbox has a password, and the request has no header ${HEADER}.`
      throw new Problem('inbox-password-required', { detail })
    }
    const own = `${inboxId}:${keyId}`
    const lockedForMs = await this.usedUpForMs('peek', inboxId, WRONG_ONES)
    if (lockedForMs > 0 && (await this.usedUpForMs('peek', own, OWN_WRONG_ONES)) > 0) {
      throw tooMany(lockedForMs)
    }
    if (timingSafeEqual(Buffer.from(hashSecret(given)), Buffer.from(digest))) return
    await this.usedUpForMs('consume', own, OWN_WRONG_ONES)
    const refusedForMs = await this.usedUpForMs('consume', inboxId, WRONG_ONES)
    if (refusedForMs > 0) throw tooMany(refusedForMs)
    throw new Problem('inbox-password-invalid', {
      detail: `What ${HEADER} says is not the inbox's password.`,
    })
  }

  /**
   * 0 if attempts are left, or the counts are unavailable: 128 bits can't be guessed during an outage, and an outage must
   * not lock out those who know the password.
   */
  private async usedUpForMs(ask: 'peek' | 'consume', key: string, policy: RatePolicy): Promise<number> {
    const verdict = await this.throttle[ask](key, [policy])
    return verdict === null || verdict.isAllowed ? 0 : verdict.next.refillsInMs
  }
}

function tooMany(forMs: number): Problem {
  return new Problem('too-many-password-attempts', {
    detail: `${WRONG_ONES.quota} wrong passwords were given for this inbox within a minute.`,
    headers: { 'retry-after': String(secondsUntil(forMs)) },
  })
}
