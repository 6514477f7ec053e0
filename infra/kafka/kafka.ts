import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { LOOPBACK } from '../servers/ports.js'
import { scramArguments, securedProperties, type SecuredListeners } from './secured-listeners.js'
import { serverProperties, type NodePorts } from './server-properties.js'
import { requireProgram } from '../servers/programs.js'
import { ServerProcess, type Launch, type Life } from '../servers/server-process.js'

/*
 * Kafka in KRaft mode on loopback: every node is broker and controller in one process. The folder of a node has
 * server.properties, kafka.log and data/. It must only be reachable from this machine, because the plain listener
 * requires no password.
 */

export type { SecuredListeners } from './secured-listeners.js'

export interface KafkaOptions {
  /** Folder of Kafka's jars, see jars.ts. */
  jars: string
  /** Has a folder for each node. It may have the data of an earlier run with the same number of nodes. */
  folder: string
  /** Ports of each node. */
  ports: readonly NodePorts[]
  life: Life
  /** Maximum heap of each node. */
  heapMib?: number
  /** Uses only the fast JIT compiler, which suits a process that lives for minutes. */
  isShortLived?: boolean
  /** Added to server.properties; overrides the defaults. */
  settings?: Readonly<Record<string, string | number>>
  /** Additional listeners; single node only. */
  secured?: SecuredListeners
}

export interface KafkaNode {
  readonly pid: number
  readonly port: number
  /** Folder of its partitions' data. */
  readonly dataDir: string
  /** Sends a signal. If the signal ends processes, resolves once the node has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it again after it has ended, on the same data and ports. Resolves once it answers, for which most nodes must run. */
  restart(): Promise<void>
}

export interface KafkaCluster {
  /** host:port of every node. */
  readonly brokers: string[]
  readonly nodes: KafkaNode[]
}

interface NodePlan {
  name: string
  port: number
  folder: string
  dataDir: string
  properties: string
  options: KafkaOptions
}

const run = promisify(execFile)
const CLUSTER_ID_LENGTH = 22
const UP_WITHIN_MS = 60_000
const FORMATTED_WITHIN_MS = 60_000
const ANSWER_WITHIN_MS = 2_000
const QUICK = '-XX:TieredStopAtLevel=1'
const LOGGING = join(process.cwd(), 'infra/kafka/log4j2.properties')

/** Starts all nodes. Resolves once every node answers and knows all others. */
export async function startKafka(options: KafkaOptions): Promise<KafkaCluster> {
  requireProgram('java')
  const plans = options.ports.map(({ clients }, index) => planOf(options, clients, index))
  const clusterId = await clusterIdOf(options.folder)
  await Promise.all(plans.map((plan) => format(plan, clusterId)))
  const starts = await Promise.allSettled(plans.map((plan) => start(plan, plans.length)))
  const failed = starts.find((result) => result.status === 'rejected')
  const servers = starts.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (failed !== undefined) {
    await Promise.all(servers.map((server) => server.end('SIGKILL')))
    throw failed.reason
  }
  return {
    brokers: plans.map(({ port }) => `${LOOPBACK}:${port}`),
    nodes: plans.map((plan, index) => nodeOf(plan, servers[index])),
  }
}

function nodeOf(plan: NodePlan, first: ServerProcess | undefined): KafkaNode {
  if (first === undefined) throw new Error(`${plan.name} has no process`)
  let server = first
  return {
    port: plan.port,
    dataDir: plan.dataDir,
    get pid() {
      return server.pid
    },
    kill: (signal) => server.end(signal),
    async restart() {
      if (!server.hasEnded()) throw new Error(`${plan.name} is still running`)
      server = await start(plan, 1)
    },
  }
}

function planOf(options: KafkaOptions, port: number, index: number): NodePlan {
  const id = index + 1
  const folder = join(options.folder, `node-${id}`)
  const dataDir = join(folder, 'data')
  const plain = serverProperties(id, options.ports, dataDir)
  const secured = options.secured === undefined ? {} : securedProperties(options.secured, plain)
  const settings = { ...plain, ...secured, ...options.settings }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  return {
    name: `Kafka node ${id}`,
    port,
    folder,
    dataDir,
    properties: lines.join(''),
    options,
  }
}

/** A different id for each folder, so that readers of a log notice if it was replaced. */
async function clusterIdOf(folder: string): Promise<string> {
  const path = join(folder, 'cluster-id')
  const known = existsSync(path) ? await readFile(path, 'utf8') : ''
  if (known.length === CLUSTER_ID_LENGTH) return known
  // The zero prevents a leading hyphen, which would look like an option.
  const id = Buffer.concat([Buffer.alloc(1), randomBytes(15)]).toString('base64url')
  await writeFile(path, id)
  return id
}

/** Writes the settings of the node, and formats its storage unless an earlier run has completed that. */
async function format(plan: NodePlan, clusterId: string): Promise<void> {
  const { name, folder, dataDir, properties, options } = plan
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'server.properties'), properties)
  const mark = join(folder, 'formatted')
  if (existsSync(mark)) return
  await rm(dataDir, { recursive: true, force: true })
  const command = ['format', '--cluster-id', clusterId, '--config', join(folder, 'server.properties')]
  const archive = classArchive(options.jars)
  const written = `${archive}.${randomUUID()}`
  const sharing = existsSync(archive) ? useArchive(options.jars) : `-XX:ArchiveClassesAtExit=${written}`
  const flags = ['-XX:+UseSerialGC', QUICK, sharing, `-Dlog4j2.configurationFile=${LOGGING}`]
  const users = options.secured === undefined ? [] : scramArguments(options.secured)
  const args = [...flags, '-cp', join(options.jars, '*'), 'kafka.tools.StorageTool', ...command, ...users]
  const bounds = { timeout: FORMATTED_WITHIN_MS, killSignal: 'SIGKILL' } as const
  await run('java', args, bounds).catch((error: unknown) => {
    throw new Error(`the storage of ${name} could not be formatted: ${String(error)}`)
  })
  if (existsSync(written)) await rename(written, archive)
  await writeFile(mark, '')
}

/**
 * The archive of parsed classes, which the first formatting of a storage writes. With it, Java needs a quarter less CPU
 * time to start Kafka.
 */
function classArchive(jars: string): string {
  return join(jars, 'classes.jsa')
}

/** Java ignores an archive that is missing or of another version. */
function useArchive(jars: string): string {
  return `-XX:SharedArchiveFile=${classArchive(jars)}`
}

function start({ name, port, folder, options }: NodePlan, nodes: number): Promise<ServerProcess> {
  const heap = `-Xmx${options.heapMib ?? 512}m`
  const flags = [
    heap,
    '-XX:+UseSerialGC',
    useArchive(options.jars),
    ...(options.isShortLived === true ? [QUICK] : []),
    '-Djava.awt.headless=true',
    `-Dlog4j2.configurationFile=${LOGGING}`,
  ]
  const launch: Launch = {
    name,
    command: [
      'java',
      ...flags,
      '-cp',
      join(options.jars, '*'),
      'kafka.Kafka',
      join(folder, 'server.properties'),
    ],
    logPath: join(folder, 'kafka.log'),
    life: options.life,
  }
  return ServerProcess.start(launch, () => knowsOf(port, nodes), UP_WITHIN_MS)
}

/** Whether the broker at that port answers and knows that many brokers, including itself. */
async function knowsOf(port: number, nodes: number): Promise<boolean> {
  const kafka = new Kafka({
    brokers: [`${LOOPBACK}:${port}`],
    connectionTimeout: ANSWER_WITHIN_MS,
    requestTimeout: ANSWER_WITHIN_MS,
    retry: { retries: 0 },
    logLevel: logLevel.NOTHING,
  })
  const admin = kafka.admin()
  try {
    await admin.connect()
    const { brokers } = await admin.describeCluster()
    return brokers.length >= nodes && brokers.some((broker) => broker.port === port)
  } catch {
    // Not yet. The caller has a timeout, and shows the log of the node.
    return false
  } finally {
    await admin.disconnect()
  }
}
