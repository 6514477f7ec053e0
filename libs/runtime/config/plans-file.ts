import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import {
  accountRequestsOf,
  BUILT_IN_PLANS,
  FIRST_PLAN,
  MAX_ACCOUNT_REQUESTS_PER_MINUTE,
  MAX_MESSAGES,
  MAX_REQUESTS_PER_MINUTE,
  MIN_ACCOUNT_REQUESTS_PER_MINUTE,
  parseRetention,
  PLAN_NAME,
  PUBLIC_PLAN,
  type Plan,
  type PlanTable,
} from '#libs/domain/account/access.js'
import { perLimit } from '#libs/domain/account/quota.js'
import { snakeCase } from '#libs/domain/event-sourcing/declare.js'
import { messageOf } from '#libs/runtime/errors.js'
import { SETTINGS } from './settings-table.js'
import { ConfigurationError, type Settings } from './settings.js'

/**
 * The plans in a file, which is read again when the process gets SIGHUP, or the built-in ones if `path` is null. If the
 * file has errors then, they are logged and the plans stay. Throws ConfigurationError if it has errors now.
 */
export function rereadPlans(
  { plansFile: path, publicInbox }: Pick<Settings, 'plansFile' | 'publicInbox'>,
  logger: Pick<Logger, 'info' | 'error'>,
): PlanTable {
  const plans = new Map(readPlans(path, publicInbox))
  if (path === null) return plans
  process.on('SIGHUP', () => {
    try {
      const read = [...readPlans(path, publicInbox)]
      plans.clear()
      for (const [name, plan] of read) plans.set(name, plan)
      logger.info({ plans: [...plans.keys()] }, 'read the plans again')
    } catch (error) {
      logger.error({ err: error }, 'could not read the plans again: they stay as they were')
    }
  })
  return plans
}

/** The plans in a file, or the built-in ones if `path` is null. Throws ConfigurationError with all errors. */
export function readPlans(path: string | null, hasPublicInboxes = false): PlanTable {
  if (path === null) return BUILT_IN_PLANS
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw invalid([`the file ${path} can't be read as JSON: ${messageOf(error)}`])
  }
  if (!isObject(content))
    throw invalid([`the file ${path} must contain an object with a property for each plan`])
  const errors: string[] = []
  const plans = Object.entries(content).map(([name, properties]) => {
    const report = (text: string) => errors.push(`${JSON.stringify(name)} ${text}`)
    if (!PLAN_NAME.test(name)) {
      report(
        'is not a valid plan name: a lower-case letter, then up to 31 lower-case letters, digits and hyphens',
      )
    }
    return planOf(name, properties, report)
  })
  const table: PlanTable = new Map(plans.map((plan) => [plan.name, plan]))
  if (errors.length === 0 && table.get(FIRST_PLAN)?.hasApiAccess !== true) {
    errors.push(`must have a plan "${FIRST_PLAN}" with API access: the account of the first key is on it`)
  }
  if (errors.length === 0 && hasPublicInboxes && !table.has(PUBLIC_PLAN)) {
    errors.push(`must have the plan ${PUBLIC_PLAN} if ${SETTINGS.publicInbox.variable} is true`)
  }
  if (errors.length > 0) throw invalid(errors)
  return table
}

function planOf(name: string, given: unknown, report: (text: string) => void): Plan {
  if (!isObject(given)) report('must be an object')
  const {
    has_api_access: hasApiAccess,
    per_account: isPerAccount = false,
    requests_per_minute: rate,
    account_requests_per_minute: accountRate,
    retention: text,
    max_messages: maxMessages,
    ...others
  } = isObject(given) ? given : {}
  const quotas: readonly string[] = Object.values(perLimit(({ limit }) => snakeCase(limit)))
  for (const property of Object.keys(others)) {
    if (!quotas.includes(property)) report(`has an unknown property: ${JSON.stringify(property)}`)
  }
  if (typeof hasApiAccess !== 'boolean') report('needs "has_api_access": true or false')
  if (typeof isPerAccount !== 'boolean') report('may have "per_account": true or false')
  const whole = (property: string, value: unknown, min: number, max: number): number => {
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value)
    report(`needs "${property}": a whole number from ${min} to ${max}`)
    return min
  }
  const retention = typeof text === 'string' ? parseRetention(text) : null
  if (retention === null)
    report('needs "retention": a whole number and one of m, h, d, w, from "1m" to "30d"')
  const minRequests = hasApiAccess === true ? 1 : 0
  const requestsPerMinute = whole('requests_per_minute', rate, minRequests, MAX_REQUESTS_PER_MINUTE)
  const accountRange = [MIN_ACCOUNT_REQUESTS_PER_MINUTE, MAX_ACCOUNT_REQUESTS_PER_MINUTE] as const
  const accountRequests =
    accountRate === undefined ? undefined : whole('account_requests_per_minute', accountRate, ...accountRange)
  return {
    name,
    hasApiAccess: hasApiAccess === true,
    isPerAccount: isPerAccount === true,
    requestsPerMinute,
    accountRequestsPerMinute: accountRequestsOf(requestsPerMinute, accountRequests),
    retention: retention ?? { text: '', ms: 0 },
    maxMessages: whole('max_messages', maxMessages, 1, MAX_MESSAGES),
    ...perLimit(({ limit, most }) => {
      const property = snakeCase(limit)
      const value = others[property]
      return value === undefined ? most : whole(property, value, 1, most)
    }),
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(errors: readonly string[]): ConfigurationError {
  return new ConfigurationError(errors.map((error) => `${SETTINGS.plansFile.variable}: ${error}`))
}
