import { timingSafeEqual } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Principal } from '../access/principal.js'
import { secondsUntil, Throttle } from '../access/request-limits.js'
import { Problem } from '../http/problems.js'

const HEADER = 'Mayfly-Inbox-Password'
const WINDOW_SECONDS = 60
/** Wrong passwords for one inbox, by all keys. */
const WRONG_BY_ALL: RatePolicy = { name: 'wrong-passwords', quota: 10, windowSeconds: WINDOW_SECONDS }
/** Wrong passwords for one inbox, by one key or token. */
const WRONG_BY_KEY: RatePolicy = { name: 'own-wrong-passwords', quota: 1, windowSeconds: WINDOW_SECONDS }

/**
 * Checks the passwords of protected inboxes. After ten wrong passwords within a minute, every further wrong one is
 * refused, and so is the right one from a key that has sent a wrong one. A key that has sent no wrong password can't be
 * locked out by others, so an attacker with many keys has one more guess with each of them.
 */
@Injectable()
export class InboxPasswords {
  constructor(private readonly throttle: Throttle) {}

  /**
   * `digest` is the hex SHA-256 of the right password. Throws a 403 for a wrong or missing one, and the 429
   * too-many-password-attempts.
   */
  async check({ inboxPassword, countedBy }: Principal, inboxId: InboxId, digest: string): Promise<void> {
    if (inboxPassword === null || inboxPassword === '') {
      const detail = `The inbox has a password, and the request has no header ${HEADER}.`
      throw new Problem('inbox-password-required', { detail })
    }
    const own = `${inboxId}:${countedBy}`
    const lockedForMs = await this.exhaustedForMs('peek', inboxId, WRONG_BY_ALL)
    if (lockedForMs > 0 && (await this.exhaustedForMs('peek', own, WRONG_BY_KEY)) > 0) {
      throw tooMany(lockedForMs)
    }
    if (timingSafeEqual(Buffer.from(hashSecret(inboxPassword)), Buffer.from(digest))) return
    await this.exhaustedForMs('consume', own, WRONG_BY_KEY)
    const refusedForMs = await this.exhaustedForMs('consume', inboxId, WRONG_BY_ALL)
    if (refusedForMs > 0) throw tooMany(refusedForMs)
    throw new Problem('inbox-password-invalid', {
      detail: `The password in ${HEADER} is not the inbox's password.`,
    })
  }

  /**
   * The time until another attempt is allowed; 0 if attempts are left or the counts are unavailable. An outage must not
   * lock out clients that have the password, and 128 bits can't be guessed during an outage.
   */
  private async exhaustedForMs(method: 'peek' | 'consume', key: string, policy: RatePolicy): Promise<number> {
    const verdict = await this.throttle.count((limits) => limits[method](key, [policy]))
    return verdict === null || verdict.isAllowed ? 0 : verdict.next.refillsInMs
  }
}

function tooMany(forMs: number): Problem {
  return new Problem('too-many-password-attempts', {
    detail: `${WRONG_BY_ALL.quota} wrong passwords were sent for this inbox within a minute.`,
    headers: { 'retry-after': String(secondsUntil(forMs)) },
  })
}
