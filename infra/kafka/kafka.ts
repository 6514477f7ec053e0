import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { LOOPBACK } from '../servers/ports.js'
import { ServerProcess, type Launch, type Life } from '../servers/server-process.js'

/*
 * Kafka in KRaft mode on the loopback: every node is broker and controller in one process of its own. A node's
 * folder holds server.properties, kafka.log and data/. Nothing but this machine may reach it: it asks for no
 * password.
 */

export interface KafkaOptions {
  /** Folder of Kafka's jars, see jars.ts. */
  jars: string
  /** Holds a folder for each node; may hold those of an earlier run with as many nodes. */
  folder: string
  /** Ports of each node. */
  ports: readonly { clients: number; controller: number }[]
  life: Life
  /** Most heap of each node. */
  heapMib?: number
  /** More lines of server.properties, or others instead. */
  settings?: Readonly<Record<string, string | number>>
}

export interface KafkaNode {
  readonly pid: number
  readonly port: number
  /** Folder of its partitions. */
  readonly dataDir: string
  /** Sends a signal; where it is one that ends a process, resolves once the node has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it, once it has ended, on the same data and ports; resolves once it answers: where most nodes run. */
  startAgain(): Promise<void>
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
const CLUSTER_ID = 'bWF5Zmx5LWxvb3BiYWNrLQ'
const UP_WITHIN_MS = 60_000
const FORMATTED_WITHIN_MS = 60_000
const ANSWER_WITHIN_MS = 2_000
const LOGGING = join(process.cwd(), 'infra/kafka/log4j2.properties')

/** Resolves once every node answers and knows of every other. */
export async function startKafka(options: KafkaOptions): Promise<KafkaCluster> {
  const plans = options.ports.map((_, index) => planOf(options, index))
  await Promise.all(plans.map(format))
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
    async startAgain() {
      if (!server.hasEnded()) throw new Error(`${plan.name} runs still`)
      server = await start(plan, 1)
    },
  }
}

function planOf(options: KafkaOptions, index: number): NodePlan {
  const id = index + 1
  const ports = options.ports[index]
  if (ports === undefined) throw new Error(`node ${id} has no ports`)
  const folder = join(options.folder, `node-${id}`)
  const dataDir = join(folder, 'data')
  const voters = options.ports.map(({ controller }, voter) => `${voter + 1}@${LOOPBACK}:${controller}`)
  const copies = Math.min(options.ports.length, 3)
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': id,
    'controller.quorum.voters': voters.join(','),
    'controller.listener.names': 'CONTROLLER',
    listeners: `CLIENTS://${LOOPBACK}:${ports.clients},CONTROLLER://${LOOPBACK}:${ports.controller}`,
    'advertised.listeners': `CLIENTS://${LOOPBACK}:${ports.clients}`,
    'inter.broker.listener.name': 'CLIENTS',
    'listener.security.protocol.map': 'CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': dataDir,
    'auto.create.topics.enable': false,
    'group.initial.rebalance.delay.ms': 0,
    'offsets.topic.num.partitions': 4,
    'offsets.topic.replication.factor': copies,
    'transaction.state.log.num.partitions': 4,
    'transaction.state.log.replication.factor': copies,
    'transaction.state.log.min.isr': Math.min(copies, 2),
    // Room for the largest mail there may be; each topic has its own, lower bound.
    'message.max.bytes': 300_000_000,
    'socket.request.max.bytes': 320_000_000,
    'num.network.threads': 2,
    'num.io.threads': 4,
    // The default takes half of a small heap.
    'log.cleaner.dedupe.buffer.size': 16 * 1024 * 1024,
    ...options.settings,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  return {
    name: `Kafka node ${id}`,
    port: ports.clients,
    folder,
    dataDir,
    properties: lines.join(''),
    options,
  }
}

/** Writes the node's settings, and formats its storage unless an earlier run has done so to the end. */
async function format({ name, folder, dataDir, properties, options }: NodePlan): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'server.properties'), properties)
  const mark = join(folder, 'formatted')
  if (existsSync(mark)) return
  await rm(dataDir, { recursive: true, force: true })
  const command = ['format', '--cluster-id', CLUSTER_ID, '--config', join(folder, 'server.properties')]
  const flags = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', `-Dlog4j2.configurationFile=${LOGGING}`]
  const args = [...flags, '-cp', join(options.jars, '*'), 'kafka.tools.StorageTool', ...command]
  const bounds = { timeout: FORMATTED_WITHIN_MS, killSignal: 'SIGKILL' } as const
  await run('java', args, bounds).catch((error: unknown) => {
    throw new Error(`the storage of ${name} could not be formatted: ${String(error)}`)
  })
  await writeFile(mark, '')
}

function start({ name, port, folder, options }: NodePlan, nodes: number): Promise<ServerProcess> {
  const heap = `-Xmx${options.heapMib ?? 512}m`
  const flags = [
    heap,
    '-XX:+UseSerialGC',
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

/** Whether the broker at that port answers, and knows of so many, itself among them. */
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
    // Not yet: whoever waits for it has a bound, and shows the node's own log.
    return false
  } finally {
    await admin.disconnect()
  }
}
