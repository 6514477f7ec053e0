import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Connection } from '#clients/typescript/src/connection.js'
import { welcomeText } from '#apps/standalone/standalone.js'
import { lockDataDir } from '#libs/engines/embedded/data-dir.js'
import { startClickHouse } from '../clickhouse/clickhouse.js'
import { installJars } from '../kafka/jars.js'
import { startKafka } from '../kafka/kafka.js'
import { startRedis } from '../redis/redis.js'
import { freePorts } from '../servers/ports.js'

/*
 * `npm run dev:distributed`: runs Kafka, Redis, ClickHouse and one process of each role on loopback until Ctrl-C. Their
 * data stays in MAYFLY_DATA_DIR, by default ./data/distributed.
 */

type Role = 'projector' | 'lifecycle' | 'webhooks' | 'analytics' | 'api' | 'smtp'

const FLAGS = [
  '--enable-source-maps',
  '--max-semi-space-size=16',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
]
const FOLDER = resolve(process.env.MAYFLY_DATA_DIR ?? './data/distributed')
const DEFAULT_PORTS = { http: '3000', smtp: '2525' }
/** Settings that the shell may have for other servers. An empty value counts as unset. */
const OF_OTHER_SERVERS = [
  'KAFKA_SASL_MECHANISM',
  'KAFKA_SASL_USERNAME',
  'KAFKA_SASL_PASSWORD',
  'KAFKA_TLS',
  'KAFKA_TLS_CA',
  'KAFKA_TLS_CERT',
  'KAFKA_TLS_KEY',
  'REDIS_TLS_CA',
  'REDIS_TLS_CERT',
  'REDIS_TLS_KEY',
  'CLICKHOUSE_USERNAME',
  'CLICKHOUSE_PASSWORD',
  'CLICKHOUSE_TLS_CA',
]

try {
  await main()
} catch (error) {
  say(error instanceof Error ? error.message : String(error))
  process.exit(1)
}

async function main(): Promise<void> {
  // Two Kafkas on one folder would damage its data.
  const dataDir = lockDataDir(FOLDER)
  await mkdir(join(FOLDER, 'kafka'), { recursive: true, mode: 0o700 })
  say('starting Kafka, Redis and ClickHouse')
  const [clients = 0, controller = 0, redisPort = 0, clickhousePort = 0] = await freePorts(4)
  const life = { endsWithOwner: true, removing: null } as const
  const [kafka, redis, clickhouse] = await Promise.all([
    startKafka({
      jars: await installJars({ attempts: 3 }),
      folder: join(FOLDER, 'kafka'),
      ports: [{ clients, controller }],
      life,
    }),
    startRedis({ folder: join(FOLDER, 'redis'), port: redisPort, persistence: 'append-only', life }),
    startClickHouse({ folder: join(FOLDER, 'clickhouse'), port: clickhousePort, life }),
  ])
  const settings = {
    KAFKA_PARTITIONS: '8',
    MAYFLY_HTTP_PORT: DEFAULT_PORTS.http,
    MAYFLY_SMTP_PORT: DEFAULT_PORTS.smtp,
    CLICKHOUSE_DATABASE: 'mayfly',
    MAYFLY_DATA_DIR: FOLDER,
    MAYFLY_MASTER_KEY: storedSecret('master.key', () => randomBytes(32).toString('base64')),
    MAYFLY_BOOTSTRAP_API_KEY: storedSecret('api.key', () => `mayfly-dev-${randomBytes(16).toString('hex')}`),
    ...process.env,
    ...Object.fromEntries(OF_OTHER_SERVERS.map((variable) => [variable, ''])),
    KAFKA_BROKERS: kafka.brokers.join(','),
    KAFKA_REPLICATION: '1',
    REDIS_URL: redis.url,
    CLICKHOUSE_URL: clickhouse.url,
    // The address of a role is read from its log.
    LOG_LEVEL: /^(debug|trace)$/.test(process.env.LOG_LEVEL ?? '') ? process.env.LOG_LEVEL : 'info',
  }

  const roles: ChildProcess[] = []
  let isEnding = false
  const end = async () => {
    if (isEnding) return
    isEnding = true
    // The roles that accept requests and mail end first.
    for (const role of roles.toReversed()) await ended(role, 'SIGTERM')
    await Promise.all([
      redis.kill('SIGTERM'),
      clickhouse.kill('SIGTERM'),
      ...kafka.nodes.map((node) => node.kill('SIGTERM')),
    ])
    dataDir.release()
    process.exit()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end())

  const start = async (role: Role): Promise<Listening> => {
    const child = spawn(process.execPath, [...FLAGS, join('dist/apps', role, 'main.js')], {
      env: { ...settings, MAYFLY_METRICS_PORT: '' },
      stdio: ['ignore', 'inherit', 'pipe'],
      // A separate process group, so that Ctrl-C only reaches this process, which ends the roles in order.
      detached: true,
    })
    roles.push(child)
    child.once('exit', (code) => {
      if (isEnding) return
      say(`the role ${role} ended with ${String(code)}`)
      process.exitCode = 1
      void end()
    })
    return listening(child)
  }
  await start('projector')
  const [api, smtp] = await Promise.all([
    start('api'),
    start('smtp'),
    start('lifecycle'),
    start('webhooks'),
    start('analytics'),
  ])
  const consoleLink = await newConsoleLink(api.httpPort ?? 0, settings.MAYFLY_BOOTSTRAP_API_KEY)
  process.stdout.write(
    welcomeText({
      url: api.url ?? '',
      httpPort: api.httpPort ?? 0,
      smtpHost: process.env.MAYFLY_SMTP_HOST ?? '127.0.0.1',
      smtp: {
        port: smtp.smtpPort ?? 0,
        tlsPort: smtp.smtpsPort ?? null,
        caFile: smtp.smtpCaFile ?? null,
        caughtDomains: null,
      },
      firstKey: { secret: settings.MAYFLY_BOOTSTRAP_API_KEY },
      dataDir: '',
      consoleLink,
    }),
  )
  process.stdout.write(
    `It runs on:

  Kafka        ${kafka.brokers.join(',')}
  Redis        ${redis.url}
  ClickHouse   ${clickhouse.url} (database ${settings.CLICKHOUSE_DATABASE})

`,
  )
}

async function newConsoleLink(httpPort: number, apiKey: string): Promise<string> {
  const host = process.env.MAYFLY_HTTP_HOST ?? '127.0.0.1'
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${httpPort}`
  const api = new Connection({ url, apiKey, timeoutMs: 30_000, fetch })
  return (await api.post<{ url: string }>('/console/links')).url
}

interface Listening {
  url?: string
  httpPort?: number
  smtpPort?: number
  smtpsPort?: number
  smtpCaFile?: string
}

/** Forwards the log of a role. Resolves with its line `listening`. */
function listening({ stderr }: ChildProcess): Promise<Listening> {
  if (stderr === null) throw new Error('the role has no standard error')
  return new Promise((resolve) => {
    createInterface({ input: stderr }).on('line', (line) => {
      process.stderr.write(`${line}\n`)
      if (line.includes('"msg":"listening"')) resolve(JSON.parse(line) as Listening)
    })
  })
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'exit')
}

/** A secret in this folder, generated at its first start. */
function storedSecret(name: string, make: () => string): string {
  const path = join(FOLDER, name)
  if (!existsSync(path)) writeFileSync(path, `${make()}\n`, { mode: 0o600, flush: true })
  return readFileSync(path, 'utf8').trim()
}

function say(line: string): void {
  process.stderr.write(`dev: ${line}\n`)
}
