import { crc32 } from 'node:zlib'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { perLimit, type PerLimit } from './quota.js'
import { parseDuration, parseLifespan, UNIT_MS, type Lifespan } from '#libs/domain/inbox/new-inbox.js'

/*
 * The permissions of an account: its plan, the scopes of its keys, and the form and grace of secrets.
 */

/** The features and limits of an account. */
export interface Plan extends PerLimit<number> {
  name: string
  hasApiAccess: boolean
  /** Whether an account may have its own limits instead of the plan's. */
  isPerAccount: boolean
  /** Sustained rate of each key. */
  requestsPerMinute: number
  /** Of all keys, sessions of the console and inbox tokens of an account together. */
  accountRequestsPerMinute: number
  /** The longest lifespan of an inbox. */
  retention: Lifespan
  /** Of one inbox. */
  maxMessages: number
}

/** Limits of one account, instead of its plan's. */
export type AccountLimits = Partial<Omit<Plan, 'name' | 'hasApiAccess' | 'isPerAccount'>>

export type PlanTable = ReadonlyMap<string, Plan>

/** The account of public inboxes. Fixed, so that all instances open the same one. */
export const PUBLIC_ACCOUNT_ID = 'acc_00000000000000000000000000' as AccountId

/** The plan of public inboxes. */
export const PUBLIC_PLAN = 'free'

/** The plan of the account that owns the first API key of an installation. */
export const FIRST_PLAN = 'enterprise'

export const PLAN_NAME = /^[a-z][a-z0-9-]{0,31}$/
export const MAX_REQUESTS_PER_MINUTE = 1_000_000_000
export const MIN_ACCOUNT_REQUESTS_PER_MINUTE = 2_400
export const MAX_ACCOUNT_REQUESTS_PER_MINUTE = 20 * MAX_REQUESTS_PER_MINUTE
export const MAX_MESSAGES = 10_000_000
/** The longest retention of any plan. Events are kept for three times as long. */
export const MAX_RETENTION: Lifespan = { text: '30d', ms: 30 * 86_400_000 }
/** The retention of an account whose plan is unknown: it keeps its existing inboxes, without API access. */
const MIN_RETENTION: Lifespan = { text: '1m', ms: 60_000 }

/**
 * The requests per minute of an account, by default those of twenty keys. Never so few that one key or two sessions of the
 * console could use them up: a key has half as many requests more for bursts.
 */
export function accountRequestsOf(requestsPerMinute: number, wanted = 20 * requestsPerMinute): number {
  return Math.max(wanted, 3 * requestsPerMinute, MIN_ACCOUNT_REQUESTS_PER_MINUTE)
}

const GIB = 2 ** 30

const built = (
  name: string,
  requestsPerMinute: number,
  retention: Lifespan,
  maxMessages: number,
  quotas: Partial<PerLimit<number>> = {},
): Plan => ({
  name,
  hasApiAccess: requestsPerMinute > 0,
  isPerAccount: name === FIRST_PLAN,
  requestsPerMinute,
  accountRequestsPerMinute: accountRequestsOf(requestsPerMinute),
  retention,
  maxMessages,
  ...perLimit(({ most }) => most),
  ...quotas,
})

const SMALL = {
  maxInboxes: 25_000,
  maxInboxesPerDay: 250_000,
  maxMessagesPerDay: 1_000_000,
  maxStoredBytes: 4 * GIB,
  maxWebhooks: 1_000,
  maxDomains: 100,
  maxMembers: 50,
}
const MEDIUM = {
  maxInboxes: 200_000,
  maxInboxesPerDay: 2_000_000,
  maxMessagesPerDay: 10_000_000,
  maxStoredBytes: 32 * GIB,
  maxWebhooks: 10_000,
  maxMembers: 250,
}

/** The plans if MAYFLY_PLANS is not set. */
export const BUILT_IN_PLANS: PlanTable = new Map(
  [
    built('free', 0, { text: '48h', ms: 48 * 3_600_000 }, 100, SMALL),
    built('starter', 100, MAX_RETENTION, 10_000, SMALL),
    built('pro', 1_000, MAX_RETENTION, 100_000, MEDIUM),
    built(FIRST_PLAN, 1_000_000, MAX_RETENTION, 1_000_000),
  ].map((plan) => [plan.name, plan]),
)

/** The plan with the account's own limits, if the plan allows them. Its own rate of a key changes the account's default. */
export function planWithLimits(plan: Plan, limits: AccountLimits | null): Plan {
  if (!plan.isPerAccount || limits === null) return plan
  const own = { ...plan, ...limits }
  const wanted = limits.requestsPerMinute === undefined ? own : limits
  return {
    ...own,
    accountRequestsPerMinute: accountRequestsOf(own.requestsPerMinute, wanted.accountRequestsPerMinute),
  }
}

/** The plan of an account whose plan is not configured: without API access, so that nothing is allowed by mistake. */
export function unknownPlan(name: string): Plan {
  return { ...built(name, 0, MIN_RETENTION, 0), isPerAccount: false }
}

/** The plan of an account with its own limits. */
export function planOf(plans: PlanTable, account: { plan: string; limits: AccountLimits | null }): Plan {
  const plan = plans.get(account.plan)
  return plan === undefined ? unknownPlan(account.plan) : planWithLimits(plan, account.limits)
}

/** What an inbox token may use, whatever the plan of its account. It can't create anything. */
export const TOKEN_PLAN: Plan = { ...built('inbox-token', 60, MIN_RETENTION, 0), isPerAccount: false }

/** Parses a plan's retention. Null if the text is malformed or the time is longer than thirty days. */
export function parseRetention(text: string): Lifespan | null {
  const retention = parseLifespan(text)
  return retention === null || retention.ms > MAX_RETENTION.ms ? null : retention
}

export const SCOPES = ['inboxes', 'read', 'audit', 'admin', 'operator'] as const

/** The permissions of a key. `read` allows the GET requests of `inboxes`; `operator` has access to every account. */
export type Scope = (typeof SCOPES)[number]

export function allows(held: readonly Scope[], wanted: readonly Scope[]): boolean {
  return wanted.some((scope) => held.includes(scope))
}

/** The scopes that the holder of some scopes may give to a key or a member. An administrator may use the whole account. */
export function givableScopes(held: readonly Scope[]): readonly Scope[] {
  if (held.includes('operator')) return SCOPES
  return held.includes('admin') ? SCOPES.filter((scope) => scope !== 'operator') : withImplied(held)
}

export function withImplied(held: readonly Scope[]): readonly Scope[] {
  return held.includes('inboxes') && !held.includes('read') ? [...held, 'read'] : held
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const FORM = /^(mf_[a-z][a-z0-9-]{0,31}_[0-9A-Za-z]{32}_)([0-9A-Za-z]{6})$/

/** Random base62 digits in a secret. */
export const SECRET_DIGITS = 32

export const ENVIRONMENT = /^[a-z][a-z0-9-]{0,31}$/

/** Bytes from this one on are skipped: with them, the first digits would be more likely than the others. */
const BIASED_FROM = 256 - (256 % ALPHABET.length)
const BYTES_AT_ONCE = 2 * SECRET_DIGITS

/**
 * Generates a secret from random bytes; the same bytes give the same secret. All digits are equally likely. Format:
 * `mf_<environment>_<32 base62 digits>_<CRC-32 (ISO 3309) of all that precedes, as 6 base62 digits>`.
 */
export function generateSecret(environment: string, bytes: (count: number) => Uint8Array): string {
  const digits: string[] = []
  while (digits.length < SECRET_DIGITS) {
    const unbiased = bytes(BYTES_AT_ONCE).filter((byte) => byte < BIASED_FROM)
    const drawn = Array.from(unbiased, (byte) => ALPHABET.charAt(byte % ALPHABET.length))
    digits.push(...drawn.slice(0, SECRET_DIGITS - digits.length))
  }
  const body = `mf_${environment}_${digits.join('')}_`
  return body + checksum(body)
}

/** Whether a text looks like a secret but has a wrong checksum: a typo, detected without a lookup. */
export function isMistyped(secret: string): boolean {
  const [, body = '', sum] = FORM.exec(secret) ?? []
  return sum !== undefined && checksum(body) !== sum
}

/** The part of a secret that may be shown after its creation. */
export function prefixOf(secret: string): string {
  return secret.slice(0, Math.min(Math.floor(secret.length / 3), 'mf__'.length + 32 + 4))
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let count = 0; count < 6; count += 1) {
    digits = ALPHABET.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** The longest time that the previous secret of a key or webhook stays valid after a rotation. */
export const MAX_GRACE_MS = 7 * 86_400_000
export const GRACE_UNIT_MS = { s: 1_000, ...UNIT_MS } as const

/** Parses a grace period, `0` or a whole number and one of s m h d w, into milliseconds. Null if malformed. */
export function parseGrace(text: string): number | null {
  return text === '0' ? 0 : (parseDuration(text, GRACE_UNIT_MS)?.ms ?? null)
}
