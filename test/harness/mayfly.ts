import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { startProcess, type Ending, type MayflyProcess, type ProcessOptions } from './mayfly-process.js'
import { clickhouseUrl, kafkaBrokers, redisUrlUnderTest } from './servers.js'

/** Mayfly under test, on ports of its own: one process, or one for each role on Kafka, Redis and ClickHouse. */
export interface Mayfly {
  url: string
  smtpPort: number
  /** With implicit TLS; null if there is none. */
  smtpsPort: number | null
  /** What a client must trust for TLS; null if it is off. */
  smtpCaFile: string | null
  dataDir: string
  apiKey: string
  /** Of the process that answers HTTP. */
  pid: number
  /** Of every process. */
  pids: readonly number[]
  /** Everything printed so far. */
  output(): { stdout: string; stderr: string }
  /**
   * Sends a signal to every process; resolves once they have ended, with how the first one did that did not end with 0.
   */
  end(signal: NodeJS.Signals): Promise<Ending>
  /** Starts it anew on what it stored, once it has ended. */
  startAgain(): Promise<Mayfly>
  /** Ends it, where it runs, and removes its folder. */
  dispose(): Promise<void>
}

export interface StartOptions {
  env?: Readonly<Record<string, string>>
  /** What another one stored in. */
  dataDir?: string
  apiKey?: string
  /** Runs it as this user and group, on the embedded engine. */
  user?: number
  /** A command that runs it on the embedded engine. */
  through?: ProcessOptions['through']
  /** Runs the webhooks too, which where each role has a process have one of their own. */
  hasWebhooks?: boolean
  /** Likewise what counts usage; without, nothing does. */
  hasAnalytics?: boolean
  /** Runs every role in one process on the distributed engine too: for what it does not matter to who knows what. */
  isOneProcess?: boolean
  /** In place of the one that the suite runs on. */
  engine?: EngineName
}

export type EngineName = 'embedded' | 'distributed'

/** As a part of `env`: what trials do without at their defaults again. */
export const AS_SHIPPED = { MAYFLY_PARSE_THREADS: '', MAYFLY_COUNT_USAGE: '' }

type Layers = readonly (readonly ProcessOptions['app'][])[]

const ONE_PROCESS: Layers = [['standalone']]
/** In the order of their start; what takes something in ends first, as an operator would have it. */
const A_PROCESS_A_ROLE: Layers = [
  ['projector', 'lifecycle', 'webhooks', 'analytics'],
  ['api', 'smtp'],
]

/** Which engine is run on: suites for both are run twice. */
export function engineUnderTest(): EngineName {
  return process.env.TEST_ENGINE === 'distributed' ? 'distributed' : 'embedded'
}

/** Runs the build. Resolves once it listens; rejects with NotStartedError if a process ends before. */
export async function startMayfly(options: StartOptions = {}): Promise<Mayfly> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'mayfly-')))
  const apiKey = options.apiKey ?? 'a-key-for-the-end-to-end-suites'
  const { user, through, hasWebhooks = false, hasAnalytics = false, engine = engineUnderTest() } = options
  const planned = engine === 'embedded' || options.isOneProcess === true ? ONE_PROCESS : A_PROCESS_A_ROLE
  const env = {
    MAYFLY_DATA_DIR: dataDir,
    MAYFLY_HTTP_PORT: '0',
    MAYFLY_SMTP_PORT: '0',
    MAYFLY_BOOTSTRAP_API_KEY: apiKey,
    // Hundreds are started: each with no more than it is asked for.
    MAYFLY_PARSE_THREADS: '1',
    MAYFLY_COUNT_USAGE: String(hasAnalytics),
    ...(engine === 'distributed' ? distributedEnvironment(basename(dataDir)) : {}),
    ...options.env,
  }
  const layers: MayflyProcess[][] = []
  for (const layer of planned) {
    const apps = layer.filter(
      (app) => (app !== 'webhooks' || hasWebhooks) && (app !== 'analytics' || hasAnalytics),
    )
    const starting = apps.map((app) => startProcess({ app, env: environmentOf(app, env), user, through }))
    const started = await Promise.allSettled(starting)
    layers.push(started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])))
    const failed = started.find((each) => each.status === 'rejected')
    if (failed === undefined) continue
    await endAll(layers, 'SIGKILL')
    throw failed.reason
  }
  const all = layers.flat()
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
    end: (signal) => endAll(layers, signal),
    startAgain: () => startMayfly({ ...options, dataDir, apiKey }),
    async dispose() {
      await mayfly.end('SIGKILL')
      await rm(dataDir, { recursive: true, force: true })
    },
  }
  return mayfly
}

/** Settings of processes that share a Kafka, a Redis and a ClickHouse with other suites'. */
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

/** A database of the suite's own, as its topics are; ClickHouse's names have fewer characters. */
export function databaseOf(name: string): string {
  return `suite_${Buffer.from(name).toString('hex').slice(-50)}`
}

/** Of a port that is given, the process that answers HTTP alone makes use. */
function environmentOf(
  app: ProcessOptions['app'],
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  return app === 'api' || app === 'standalone' ? { ...env } : { ...env, MAYFLY_METRICS_PORT: '' }
}

async function endAll(layers: readonly MayflyProcess[][], signal: NodeJS.Signals): Promise<Ending> {
  let worst: Ending = 0
  for (const layer of layers.toReversed()) {
    const codes = await Promise.all(layer.map((each) => each.end(signal)))
    for (const code of codes) if (worst === 0) worst = code
  }
  return worst
}
