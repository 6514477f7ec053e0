import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { startProcess, type Ending, type MayflyProcess, type ProcessOptions } from './mayfly-process.js'
import { clickhouseUrl, kafkaBrokers, redisUrlUnderTest } from './servers.js'

/** Mayfly under test on free ports: one process, or one process per role on Kafka, Redis and ClickHouse. */
export interface Mayfly {
  url: string
  smtpPort: number
  /** The port for implicit TLS, or null. */
  smtpsPort: number | null
  /** The authority that a client must trust for TLS; null if TLS is off. */
  smtpCaFile: string | null
  dataDir: string
  apiKey: string
  /** Id of the process that answers HTTP. */
  pid: number
  /** Ids of all processes. */
  pids: readonly number[]
  /** Everything printed so far. */
  output(): { stdout: string; stderr: string }
  /** Sends a signal to every process. Resolves once all have ended, with the first ending that is not 0. */
  end(signal: NodeJS.Signals): Promise<Ending>
  /** Starts it again on the same data, after it has ended. */
  restart(): Promise<Mayfly>
  /** Kills it, if it runs, and removes its folder. */
  dispose(): Promise<void>
}

export interface StartOptions {
  env?: Readonly<Record<string, string>>
  /** The data folder of an earlier Mayfly. */
  dataDir?: string
  apiKey?: string
  /** Runs it as this user and group, on the embedded engine. */
  user?: number
  /** A command that runs it on the embedded engine. */
  through?: ProcessOptions['through']
  /** Also runs webhooks, in a separate process on the distributed engine. */
  hasWebhooks?: boolean
  /** Also runs analytics. Without it, usage is not counted. */
  hasAnalytics?: boolean
  /** Runs all roles in one process on the distributed engine too. */
  isOneProcess?: boolean
  /** Overrides the engine that the suite runs on. */
  engine?: EngineName
}

export type EngineName = 'embedded' | 'distributed'

/** Part of `env`: resets the settings that `startMayfly` changes to their defaults. */
export const DEFAULT_SETTINGS = { MAYFLY_PARSE_THREADS: '', MAYFLY_COUNT_USAGE: '' }

type StartOrder = readonly (readonly ProcessOptions['app'][])[]

const ONE_PROCESS: StartOrder = [['standalone']]
/** In the order of their start. They end in reverse order, so that requests and mail stop first. */
const ONE_PROCESS_PER_ROLE: StartOrder = [
  ['projector', 'lifecycle', 'webhooks', 'analytics'],
  ['api', 'smtp'],
]

/** The engine of this run. Suites for both engines run twice. */
export function engineUnderTest(): EngineName {
  return process.env.TEST_ENGINE === 'distributed' ? 'distributed' : 'embedded'
}

/** Runs the build. Resolves once it listens; rejects with NotStartedError if a process ends before that. */
export async function startMayfly(options: StartOptions = {}): Promise<Mayfly> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'mayfly-')))
  const apiKey = options.apiKey ?? 'a-key-for-the-end-to-end-suites'
  const { user, through, hasWebhooks = false, hasAnalytics = false, engine = engineUnderTest() } = options
  const planned = engine === 'embedded' || options.isOneProcess === true ? ONE_PROCESS : ONE_PROCESS_PER_ROLE
  const env = {
    MAYFLY_DATA_DIR: dataDir,
    MAYFLY_HTTP_PORT: '0',
    MAYFLY_SMTP_PORT: '0',
    MAYFLY_BOOTSTRAP_API_KEY: apiKey,
    // Hundreds are started, so each runs as little as possible.
    MAYFLY_PARSE_THREADS: '1',
    MAYFLY_COUNT_USAGE: String(hasAnalytics),
    ...(engine === 'distributed' ? distributedEnvironment(basename(dataDir)) : {}),
    ...options.env,
  }
  const groups: MayflyProcess[][] = []
  for (const group of planned) {
    const apps = group.filter(
      (app) => (app !== 'webhooks' || hasWebhooks) && (app !== 'analytics' || hasAnalytics),
    )
    const starting = apps.map((app) => startProcess({ app, env: environmentOf(app, env), user, through }))
    const started = await Promise.allSettled(starting)
    groups.push(started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])))
    const failed = started.find((each) => each.status === 'rejected')
    if (failed === undefined) continue
    await endAll(groups, 'SIGKILL')
    throw failed.reason
  }
  const all = groups.flat()
  const api = all.find(({ listening }) => listening.httpPort !== undefined)
  const smtp = all.find(({ listening }) => listening.smtpPort !== undefined)
  if (api === undefined || smtp === undefined) throw new Error('no process listens')
  const mayfly: Mayfly = {
    url: `http://127.0.0.1:${api.listening.httpPort}`,
    smtpPort: smtp.listening.smtpPort ?? 0,
    smtpsPort: smtp.listening.smtpsPort ?? null,
    smtpCaFile: smtp.listening.smtpCaFile ?? null,
    dataDir,
    apiKey,
    pid: api.pid,
    pids: all.map(({ pid }) => pid),
    output: () => ({
      stdout: all.map((each) => each.output().stdout).join(''),
      stderr: all.map((each) => each.output().stderr).join(''),
    }),
    end: (signal) => endAll(groups, signal),
    restart: () => startMayfly({ ...options, dataDir, apiKey }),
    async dispose() {
      await mayfly.end('SIGKILL')
      await rm(dataDir, { recursive: true, force: true })
    },
  }
  return mayfly
}

/** The routes of a server as `<method> <path>`. The server logs them at level `debug` when it starts to listen. */
export function registeredRoutes(mayfly: Mayfly): string[] {
  const { stdout, stderr } = mayfly.output()
  const line = (stdout + stderr).split('\n').find((each) => each.includes('"accepting requests"')) ?? '{}'
  const { routes = [] } = JSON.parse(line) as { routes?: string[] }
  return routes
}

/** Settings of processes that share Kafka, Redis and ClickHouse with other suites. */
export function distributedEnvironment(name: string): Record<string, string> {
  return {
    KAFKA_BROKERS: kafkaBrokers().join(','),
    KAFKA_PARTITIONS: '4',
    KAFKA_REPLICATION: '1',
    REDIS_URL: redisUrlUnderTest(),
    CLICKHOUSE_URL: clickhouseUrl(),
    CLICKHOUSE_DATABASE: databaseOf(name),
    MAYFLY_TOPIC_PREFIX: `${name}.`,
    MAYFLY_MASTER_KEY: `${'A'.repeat(43)}=`,
  }
}

/** The ClickHouse database of a suite. ClickHouse allows shorter names than Kafka. */
export function databaseOf(name: string): string {
  return `suite_${Buffer.from(name).toString('hex').slice(-50)}`
}

/** Only the process that answers HTTP uses MAYFLY_METRICS_PORT. */
function environmentOf(
  app: ProcessOptions['app'],
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  return app === 'api' || app === 'standalone' ? { ...env } : { ...env, MAYFLY_METRICS_PORT: '' }
}

async function endAll(groups: readonly MayflyProcess[][], signal: NodeJS.Signals): Promise<Ending> {
  let worst: Ending = 0
  for (const group of groups.toReversed()) {
    const codes = await Promise.all(group.map((each) => each.end(signal)))
    for (const code of codes) if (worst === 0) worst = code
  }
  return worst
}
