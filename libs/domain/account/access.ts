import { parseLifespan, type Lifespan } from '#libs/domain/inbox/inbox.js'
import { crc32 } from 'node:zlib'

/** What an account may do and how much of it. */
export interface Plan {
  name: string
  hasApiAccess: boolean
  /** Whether each account on it may have limits of its own. */
  isPerAccount: boolean
  /** Of each key, sustained. */
  requestsPerMinute: number
  /** The longest life of an inbox. */
  retention: Lifespan
  /** Most messages in one inbox. */
  maxMessages: number
}

/** Limits of one account, in the place of its plan's. */
export interface AccountLimits {
  requestsPerMinute?: number
  retention?: Lifespan
  maxMessages?: number
}

export type PlanTable = ReadonlyMap<string, Plan>

/** The plan of the account that the first key of an installation belongs to. */
export const FIRST_PLAN = 'enterprise'

export const PLAN_NAME = /^[a-z][a-z0-9-]{0,31}$/
export const MAX_REQUESTS_PER_MINUTE = 1_000_000_000
export const MAX_MESSAGES = 10_000_000
/** Of any plan. Events are kept for three times as long. */
export const LONGEST_RETENTION: Lifespan = { text: '30d', ms: 30 * 86_400_000 }
/** What an account on no known plan is left with: its mail as far as it is there, and no access. */
const SHORTEST_RETENTION: Lifespan = { text: '1m', ms: 60_000 }

const built = (name: string, requestsPerMinute: number, retention: Lifespan, maxMessages: number): Plan => ({
  name,
  hasApiAccess: requestsPerMinute > 0,
  isPerAccount: name === FIRST_PLAN,
  requestsPerMinute,
  retention,
  maxMessages,
})

/** Where the configuration names no others. */
export const BUILT_IN_PLANS: PlanTable = new Map(
  [
    built('free', 0, { text: '48h', ms: 48 * 3_600_000 }, 100),
    built('starter', 100, LONGEST_RETENTION, 10_000),
    built('pro', 1_000, LONGEST_RETENTION, 100_000),
    built(FIRST_PLAN, 1_000_000, LONGEST_RETENTION, 1_000_000),
  ].map((plan) => [plan.name, plan]),
)

/** The plan as it is for one account. */
export function planWith(plan: Plan, limits: AccountLimits | null): Plan {
  return plan.isPerAccount && limits !== null ? { ...plan, ...limits } : plan
}

/** The plan of an account whose own is not in the table: without API access, so that nothing is allowed by mistake. */
export function unknownPlan(name: string): Plan {
  return { ...built(name, 0, SHORTEST_RETENTION, 0), isPerAccount: false }
}

/** A retention as a plan may have it; null if the text is none, or one of over thirty days. */
export function parseRetention(text: string): Lifespan | null {
  const retention = parseLifespan(text)
  return retention === null || retention.ms > LONGEST_RETENTION.ms ? null : retention
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const FORM = /^(mf_[a-z][a-z0-9-]{0,31}_[0-9A-Za-z]{32}_)([0-9A-Za-z]{6})$/

/** Random base62 digits that a secret is made of. */
export const SECRET_DIGITS = 32

export const ENVIRONMENT = /^[a-z][a-z0-9-]{0,31}$/

/** Bytes from here on would favour the first digits. */
const EVEN = 256 - (256 % ALPHABET.length)
const BYTES_AT_ONCE = 2 * SECRET_DIGITS

/**
 * A secret of random bytes, the same for the same ones: each digit is as likely as any other. Its form is
 * `mf_<environment>_<32 base62>_<6 base62: CRC-32 (ISO 3309) of all before it>`.
 */
export function drawSecret(environment: string, bytes: (count: number) => Uint8Array): string {
  const digits: string[] = []
  while (digits.length < SECRET_DIGITS) {
    const even = bytes(BYTES_AT_ONCE).filter((byte) => byte < EVEN)
    const drawn = Array.from(even, (byte) => ALPHABET.charAt(byte % ALPHABET.length))
    digits.push(...drawn.slice(0, SECRET_DIGITS - digits.length))
  }
  const body = `mf_${environment}_${digits.join('')}_`
  return body + checksum(body)
}

/** Whether a text has a key's form but not its checksum: a copying mistake, found without a look-up. */
export function isMistyped(secret: string): boolean {
  const [, body = '', sum] = FORM.exec(secret) ?? []
  return sum !== undefined && checksum(body) !== sum
}

/** As much of a secret as may be shown again. */
export function prefixOf(secret: string): string {
  return secret.slice(0, Math.min(Math.floor(secret.length / 3), 'mf__'.length + 32 + 4))
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < 6; place += 1) {
    digits = ALPHABET.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** For which the secret of a key, or of a webhook, may go on working once another has taken its place. */
export const LONGEST_GRACE_MS = 7 * 86_400_000
export const GRACE_UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** How long a former secret goes on working: `0`, or a whole number and one of s m h d w, in milliseconds; else null. */
export function parseGrace(text: string): number | null {
  if (text === '0') return 0
  const [, count, unit] = /^(\d+)([smhdw])$/.exec(text) ?? []
  return unit === undefined ? null : Number(count) * GRACE_UNIT_MS[unit as keyof typeof GRACE_UNIT_MS]
}

export const SCOPES = ['inboxes', 'read', 'audit', 'admin', 'operator'] as const

/** What a key may do: `read` is the GETs of `inboxes`, `operator` reaches every account. */
export type Scope = (typeof SCOPES)[number]

/** Whether a holder of some scopes may do what one of the wanted scopes allows. */
export function allows(held: readonly Scope[], wanted: readonly Scope[]): boolean {
  return wanted.some((scope) => held.includes(scope))
}
