import { SCOPES } from '#libs/domain/account/access.js'
import { as, issueKey, openAccount } from './accounts.js'
import type { Target } from './client.js'
import { AS_SHIPPED, engineUnderTest, startMayfly, type EngineName } from './mayfly.js'
import { redisClusterUrls } from './servers.js'

/*
 * A Mayfly for each of Jest's projects, which its global setup starts, and where each suite has an account of its own.
 * Suites that want other settings, that end it, or that count what all its users do start theirs.
 */

export interface SharedMayfly extends Target {
  /** The same Mayfly, with a key that reaches every account. */
  operator: Target
}

export type SharedName = EngineName | 'redis-cluster'

/** As where one account alone has mail: another suite's must not have a large mail of this one given up. */
const UNHURRIED = {
  MAYFLY_PARSE_PATIENCE_MS: '10000',
  MAYFLY_PARSE_INBOX_BUDGET_MS: '60000',
  MAYFLY_PARSE_ACCOUNT_BUDGET_MS: '600000',
}

/** That of the project that runs, with a key of an account that nobody else has, of every scope but `operator`. */
export async function sharedMayfly(): Promise<SharedMayfly> {
  const name = process.env.TEST_REDIS === 'cluster' ? 'redis-cluster' : engineUnderTest()
  const operator = JSON.parse(process.env[variableOf(name)] ?? 'null') as Target | null
  if (operator === null) throw new Error(`no Mayfly is shared on ${name}: the global setup starts it`)
  const { key } = await openAccount(operator, { plan: 'enterprise' })
  const scopes = SCOPES.filter((scope) => scope !== 'operator')
  const own = await issueKey(as(operator, key), { environment: 'development', scopes })
  return { ...as(operator, own), operator }
}

/** Leaves where it listens in the environment, which Jest's workers inherit. Resolves with the way to be rid of it. */
export async function startSharedMayfly(name: SharedName): Promise<() => Promise<void>> {
  const engine = name === 'embedded' ? 'embedded' : 'distributed'
  const redis = name === 'redis-cluster' ? { REDIS_URL: redisClusterUrls().join(',') } : {}
  const mayfly = await startMayfly({ engine, env: { ...AS_SHIPPED, ...UNHURRIED, ...redis } })
  const { url, smtpPort, apiKey } = mayfly
  process.env[variableOf(name)] = JSON.stringify({ url, smtpPort, apiKey } satisfies Target)
  return () => mayfly.dispose()
}

function variableOf(name: SharedName): string {
  return `TEST_SHARED_MAYFLY_${name.toUpperCase()}`
}
