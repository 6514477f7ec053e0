import { SCOPES } from '#libs/domain/account/access.js'
import { issueKey, openAccount, withKey } from './accounts.js'
import type { Target } from './client.js'
import { DEFAULT_SETTINGS, engineUnderTest, startMayfly, type EngineName } from './mayfly.js'
import { redisClusterUrls } from './servers.js'

/*
 * One Mayfly for each engine, which the global setup starts; in the project `redis-cluster` one for each suite. Each
 * suite has its own account there. Suites that need other settings, stop Mayfly, or count requests of all accounts start
 * their own.
 */

export interface SharedMayfly extends Target {
  /** The same Mayfly with a key of scope `operator`. */
  operator: Target
}

export type SharedName = EngineName | 'redis-cluster'

/** So that large mail is parsed completely on a busy machine, and whatever mail other suites send. */
export const GENEROUS_PARSE_BUDGETS = {
  MAYFLY_PARSE_TIMEOUT_MS: '60000',
  MAYFLY_PARSE_PATIENCE_MS: '60000',
  MAYFLY_PARSE_INBOX_BUDGET_MS: '60000',
  MAYFLY_PARSE_ACCOUNT_BUDGET_MS: '600000',
}

/** The shared Mayfly of this project, with a new account and a key of every scope except `operator`. */
export async function sharedMayfly(): Promise<SharedMayfly> {
  const name = process.env.TEST_REDIS === 'cluster' ? 'redis-cluster' : engineUnderTest()
  const operator = JSON.parse(process.env[variableOf(name)] ?? 'null') as Target | null
  if (operator === null) throw new Error(`no shared Mayfly was started on ${name}`)
  const { key } = await openAccount(operator, { plan: 'enterprise' })
  const scopes = SCOPES.filter((scope) => scope !== 'operator')
  const own = await issueKey(withKey(operator, key), { environment: 'development', scopes })
  return { ...withKey(operator, own), operator }
}

/** Puts its address into the environment, which Jest's workers inherit. Resolves with a function that stops it. */
export async function startSharedMayfly(name: SharedName): Promise<() => Promise<void>> {
  const engine = name === 'embedded' ? 'embedded' : 'distributed'
  const redis = name === 'redis-cluster' ? { REDIS_URL: redisClusterUrls().join(',') } : {}
  const mayfly = await startMayfly({
    engine,
    env: { ...DEFAULT_SETTINGS, ...GENEROUS_PARSE_BUDGETS, ...redis },
  })
  const { url, smtpPort, apiKey } = mayfly
  process.env[variableOf(name)] = JSON.stringify({ url, smtpPort, apiKey } satisfies Target)
  return () => mayfly.dispose()
}

function variableOf(name: SharedName): string {
  return `TEST_SHARED_MAYFLY_${name.toUpperCase()}`
}
