/*
 * Keys that expire. A key is invalid from its `expiresAt` on. Before that, its account is notified twice.
 */

const DAY_MS = 86_400_000
/** After this many days a key expires that is issued without a time. */
export const DEFAULT_KEY_DAYS = 365
export const MAX_KEY_DAYS = 3_650
/** How many days before a key expires its account is notified. */
const NOTICE_DAYS = [30, 3]

/** The part of a key that decides whether it is valid. */
export interface KeyLife {
  revokedAt: Date | null
  /** It is invalid from then on; null if it never expires. */
  expiresAt: Date | null
  /** When it was recorded as expired. */
  expiredAt: Date | null
  /** The notices that are still to be recorded, each as the number of days before it expires, in their order. */
  notices: readonly number[]
}

export type KeyState = 'active' | 'revoked' | 'expired'

export function keyState({ revokedAt, expiresAt, expiredAt }: KeyLife, now: Date): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiredAt !== null || (expiresAt !== null && expiresAt <= now) ? 'expired' : 'active'
}

export function daysAfter(time: Date, days: number): Date {
  return new Date(time.getTime() + days * DAY_MS)
}

/** The notices of a key whose time is set now. */
export function noticesOf(expiresAt: Date | null, now: Date): number[] {
  return expiresAt === null ? [] : NOTICE_DAYS.filter((days) => daysAfter(expiresAt, -days) > now)
}

/** When the next notice, or that the key has expired, is to be recorded; null if there is nothing left to record. */
export function keyDueAt({ expiresAt, revokedAt, expiredAt, notices }: KeyLife): Date | null {
  if (expiresAt === null || revokedAt !== null || expiredAt !== null) return null
  return daysAfter(expiresAt, -(notices[0] ?? 0))
}

/** What is to be recorded now; null if nothing is due. */
export function keyEventDue(
  key: KeyLife,
  now: Date,
): { type: 'expired' } | { type: 'expiring'; expiresAt: Date; daysLeft: number } | null {
  const dueAt = keyDueAt(key)
  const { expiresAt, notices } = key
  if (dueAt === null || expiresAt === null || dueAt > now) return null
  if (expiresAt <= now) return { type: 'expired' }
  // After a pause, only the last notice that is due.
  const daysLeft = notices.findLast((days) => daysAfter(expiresAt, -days) <= now)
  return daysLeft === undefined ? null : { type: 'expiring', expiresAt, daysLeft }
}
