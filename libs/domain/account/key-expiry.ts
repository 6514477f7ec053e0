import type { ApiKey } from './account.js'

/*
 * The end of a key: it is invalid from its `expiresAt` on. Before that, the account is notified twice.
 */

const DAY_MS = 86_400_000
/** Of a key that is issued without a time. */
export const DEFAULT_KEY_DAYS = 365
export const MAX_KEY_DAYS = 3_650
/** How many days before the end the account is notified. */
const NOTICE_DAYS = [30, 3]

export type KeyState = 'active' | 'revoked' | 'expired'

export function keyState({ revokedAt, expiresAt }: ApiKey, now: Date): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}

export function daysAfter(time: Date, days: number): Date {
  return new Date(time.getTime() + days * DAY_MS)
}

/** The notices of a key that gets this end now. */
export function noticesOf(expiresAt: Date | null, now: Date): number[] {
  return expiresAt === null ? [] : NOTICE_DAYS.filter((days) => daysAfter(expiresAt, -days) > now)
}

/** When the next notice or the end of the key is due; null if nothing is left to record. */
export function keyDueAt({ expiresAt, revokedAt, expiredAt, notices }: ApiKey): Date | null {
  if (expiresAt === null || revokedAt !== null || expiredAt !== null) return null
  return daysAfter(expiresAt, -(notices[0] ?? 0))
}

/** What is due now: a notice, as its number of days before the end, or the end, as 0. Null if neither is. */
export function dueNotice(key: ApiKey, now: Date): number | null {
  const dueAt = keyDueAt(key)
  if (dueAt === null || key.expiresAt === null || dueAt > now) return null
  const { expiresAt, notices } = key
  // After a pause, only the last one that is due.
  return [...notices, 0].findLast((days) => daysAfter(expiresAt, -days) <= now) ?? null
}
