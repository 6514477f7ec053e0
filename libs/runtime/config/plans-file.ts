import { readFileSync } from 'node:fs'
import {
  BUILT_IN_PLANS,
  FIRST_PLAN,
  MAX_MESSAGES,
  MAX_REQUESTS_PER_MINUTE,
  parseRetention,
  PLAN_NAME,
  type Plan,
  type PlanTable,
} from '#libs/domain/account/access.js'
import { messageOf } from '#libs/runtime/errors.js'
import { SETTINGS } from './settings-table.js'
import { ConfigurationError } from './settings.js'

/** The plans in a file, or the built-in ones if `path` is null. Throws ConfigurationError with all faults. */
export function readPlans(path: string | null): PlanTable {
  if (path === null) return BUILT_IN_PLANS
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw faulty([`the file ${path} can't be read as JSON: ${messageOf(error)}`])
  }
  if (!isObject(content))
    throw faulty([`the file ${path} must contain an object with a property for each plan`])
  const faults: string[] = []
  const plans = Object.entries(content).map(([name, properties]) => {
    const fault = (text: string) => faults.push(`${JSON.stringify(name)} ${text}`)
    if (!PLAN_NAME.test(name)) {
      fault(
        'is not a valid plan name: a lower-case letter, then up to 31 lower-case letters, digits and hyphens',
      )
    }
    return planOf(name, properties, fault)
  })
  const table: PlanTable = new Map(plans.map((plan) => [plan.name, plan]))
  if (faults.length === 0 && table.get(FIRST_PLAN)?.hasApiAccess !== true) {
    faults.push(`must have a plan "${FIRST_PLAN}" with API access: the account of the first key is on it`)
  }
  if (faults.length > 0) throw faulty(faults)
  return table
}

const PROPERTIES: ReadonlySet<string> = new Set([
  'has_api_access',
  'per_account',
  'requests_per_minute',
  'retention',
  'max_messages',
])

function planOf(name: string, given: unknown, fault: (text: string) => void): Plan {
  const properties = isObject(given) ? given : {}
  if (!isObject(given)) fault('must be an object')
  for (const property of Object.keys(properties)) {
    if (!PROPERTIES.has(property)) fault(`has an unknown property: ${JSON.stringify(property)}`)
  }
  const { has_api_access: hasApiAccess, per_account: isPerAccount = false } = properties
  if (typeof hasApiAccess !== 'boolean') fault('needs "has_api_access": true or false')
  if (typeof isPerAccount !== 'boolean') fault('may have "per_account": true or false')
  const whole = (property: string, min: number, max: number): number => {
    const value = properties[property]
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value)
    fault(`needs "${property}": a whole number from ${min} to ${max}`)
    return min
  }
  const { retention: text } = properties
  const retention = typeof text === 'string' ? parseRetention(text) : null
  if (retention === null) fault('needs "retention": a whole number and one of m, h, d, w, from "1m" to "30d"')
  return {
    name,
    hasApiAccess: hasApiAccess === true,
    isPerAccount: isPerAccount === true,
    requestsPerMinute: whole('requests_per_minute', hasApiAccess === true ? 1 : 0, MAX_REQUESTS_PER_MINUTE),
    retention: retention ?? { text: '', ms: 0 },
    maxMessages: whole('max_messages', 1, MAX_MESSAGES),
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function faulty(faults: readonly string[]): ConfigurationError {
  return new ConfigurationError(faults.map((fault) => `${SETTINGS.plansFile.variable}: ${fault}`))
}
