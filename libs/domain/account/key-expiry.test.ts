import {
  ACCOUNT_ID,
  day,
  given,
  hash,
  issued,
  KEY_FACTS,
  KEY_ID,
  opened,
  planNamed,
  revoked,
  rotated,
} from './account.test-support.js'
import { MAX_KEY_DAYS, noticesOf } from './key-expiry.js'

const ids = { accountId: ACCOUNT_ID, keyId: KEY_ID }
const endsAt = (days: number) => ({ ...issued, expiresAt: day(days) })
const record = (days: number) => ({ type: 'RecordKeyExpiry', ...ids, now: day(days) }) as const
const notice = (end: number, daysLeft: number, at: number) =>
  ({ type: 'ApiKeyExpiring', ...ids, expiresAt: day(end), daysLeft, notifiedAt: day(at) }) as const
const expired = (at: number) => ({ type: 'ApiKeyExpired', ...ids, expiredAt: day(at) }) as const

describe('a key with an end', () => {
  it('has a notice 30 and 3 days before, and ends, each once', () => {
    const key = endsAt(100)
    given(opened, key).when(record(69.9)).then([])
    given(opened, key)
      .when(record(70))
      .then([notice(100, 30, 70)])
    given(opened, key, notice(100, 30, 70))
      .when(record(71))
      .then([])
    given(opened, key, notice(100, 30, 70))
      .when(record(97))
      .then([notice(100, 3, 97)])
    given(opened, key, notice(100, 30, 70), notice(100, 3, 97))
      .when(record(99))
      .then([])
    given(opened, key, notice(100, 30, 70), notice(100, 3, 97))
      .when(record(100))
      .then([expired(100)])
    given(opened, key, expired(100)).when(record(101)).then([])
  })

  it('has only the last notice that is due after a pause, and none after its end', () => {
    given(opened, endsAt(100))
      .when(record(98))
      .then([notice(100, 3, 98)])
    given(opened, endsAt(100))
      .when(record(200))
      .then([expired(200)])
  })

  it('has no notice before it is issued', () => {
    expect(noticesOf(day(31), day(1))).toEqual([3])
    expect(noticesOf(day(32), day(1))).toEqual([30, 3])
    expect(noticesOf(day(3), day(1))).toEqual([])
    expect(noticesOf(null, day(1))).toEqual([])
  })

  it('has neither after it is revoked', () => {
    given(opened, endsAt(100), revoked(day(2)))
      .when(record(99))
      .then([])
    given(opened, endsAt(100), revoked(day(2)))
      .when(record(101))
      .then([])
  })

  it('can get another end with its next secret, with notices of its own', () => {
    const rotation = { ...rotated(1, day(80), day(80)), expiresAt: day(200) }
    const moved = [opened, endsAt(100), notice(100, 30, 70), rotation]
    given(...moved)
      .when(record(101))
      .then([])
    given(...moved)
      .when(record(170))
      .then([notice(200, 30, 170)])
    given(...moved, expired(100), notice(100, 3, 97))
      .when(record(170))
      .then([notice(200, 30, 170)])
  })

  it('must end in the future, within ten years', () => {
    const issue = {
      type: 'IssueApiKey',
      ...KEY_FACTS,
      plan: planNamed('pro'),
      activeKeys: 0,
      now: day(1),
    } as const
    const refusal = { code: 'expiry-out-of-range', maxDays: MAX_KEY_DAYS } as const
    given(opened)
      .when({ ...issue, expiresAt: day(1) })
      .thenRefused(refusal)
    given(opened)
      .when({ ...issue, expiresAt: day(2 + MAX_KEY_DAYS) })
      .thenRefused(refusal)
    const expiresAt = day(1 + MAX_KEY_DAYS)
    given(opened)
      .when({ ...issue, expiresAt })
      .then([{ ...issued, expiresAt }])
  })

  it('gets no other secret after its end, recorded or not', () => {
    const { prefix } = rotated(1, day(101), day(101))
    const rotate = {
      type: 'RotateApiKey',
      ...ids,
      secretHash: hash('1'),
      prefix,
      graceMs: 0,
      expiresAt: null,
      now: day(101),
    } as const
    const refusal = { code: 'key-ended', state: 'expired', endedAt: day(100) } as const
    given(opened, endsAt(100)).when(rotate).thenRefused(refusal)
    given(opened, endsAt(100), expired(100)).when(rotate).thenRefused(refusal)
  })
})
