import type { Lifespan } from '#libs/inbox/lifespan.js'

export const PLAN_NAMES = ['free', 'starter', 'pro', 'enterprise'] as const
export type PlanName = (typeof PLAN_NAMES)[number]

export interface Plan {
  name: PlanName
  hasApiAccess: boolean
  /** Of each key, sustained. */
  requestsPerMinute: number
  /** The longest life of an inbox. */
  retention: Lifespan
  /** Most messages in one inbox. */
  maxMessages: number
}

const DAY_MS = 86_400_000

export const PLANS: Readonly<Record<PlanName, Plan>> = {
  free: {
    name: 'free',
    hasApiAccess: false,
    requestsPerMinute: 0,
    retention: { text: '48h', ms: 2 * DAY_MS },
    maxMessages: 100,
  },
  starter: {
    name: 'starter',
    hasApiAccess: true,
    requestsPerMinute: 100,
    retention: { text: '30d', ms: 30 * DAY_MS },
    maxMessages: 10_000,
  },
  pro: {
    name: 'pro',
    hasApiAccess: true,
    requestsPerMinute: 1_000,
    retention: { text: '30d', ms: 30 * DAY_MS },
    maxMessages: 100_000,
  },
  enterprise: {
    name: 'enterprise',
    hasApiAccess: true,
    requestsPerMinute: 1_000_000,
    retention: { text: '30d', ms: 30 * DAY_MS },
    maxMessages: 1_000_000,
  },
}
