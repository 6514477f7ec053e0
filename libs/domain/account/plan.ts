import { parseLifespan, type Lifespan } from '#libs/domain/inbox/lifespan.js'

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
