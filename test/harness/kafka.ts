import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bringJars } from '#infra/kafka/jars.js'
import * as kafka from '#infra/kafka/kafka.js'
import { changeScramUser } from '#infra/kafka/scram-users.js'
import { freePorts, LOOPBACK } from '#infra/servers/ports.js'

export type { KafkaNode } from '#infra/kafka/kafka.js'

/** A Kafka of a suite's own, that ends with the suite's process at the latest. */
export interface KafkaCluster extends kafka.KafkaCluster {
  /** Ends every node and removes their data. */
  dispose(): Promise<void>
  /** host:port of each listener that asks for credentials, where they were wanted. */
  secured: Readonly<Record<keyof kafka.SecuredListeners['ports'], string>>
  /** What a user logs in with by SCRAM-SHA-512 from now on; null for nothing at all. */
  setPassword(name: string, password: string | null): Promise<void>
}

export interface StartKafkaOptions {
  nodes?: 1 | 3
  /** More lines of server.properties, or others instead. */
  settings?: kafka.KafkaOptions['settings']
  /** Most heap of each node. */
  heapMib?: number
  /** How often to try for Kafka's jars, where they are not there. */
  attempts?: number
  /** Listeners that ask for credentials, beside the plain one of a single node. */
  secured?: Omit<kafka.SecuredListeners, 'ports'>
}

/** What a Kafka does in minutes or hours, these have it do in moments. */
const HURRIED = {
  'log.cleaner.backoff.ms': 200,
  'log.retention.check.interval.ms': 500,
  'log.segment.delete.delay.ms': 500,
  'log.initial.task.delay.ms': 500,
  'broker.session.timeout.ms': 3_000,
  'broker.heartbeat.interval.ms': 500,
}

/** Resolves once every node answers, on free ports and an empty folder. */
export async function startKafka({
  nodes = 1,
  settings,
  heapMib,
  attempts = 1,
  secured,
}: StartKafkaOptions = {}): Promise<KafkaCluster> {
  const jars = await bringJars({ attempts })
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-kafka-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  const ports = await Promise.all(
    Array.from({ length: nodes }, async () => {
      const [clients = 0, controller = 0] = await freePorts(2)
      return { clients, controller }
    }),
  )
  const [sasl = 0, saslTls = 0, mutualTls = 0] = await freePorts(3)
  try {
    const cluster = await kafka.startKafka({
      jars,
      folder,
      ports,
      life: { endsWithOwner: true, removing: folder },
      isShortLived: true,
      settings: { ...HURRIED, ...settings },
      ...(heapMib === undefined ? {} : { heapMib }),
      ...(secured === undefined ? {} : { secured: { ...secured, ports: { sasl, saslTls, mutualTls } } }),
    })
    return {
      ...cluster,
      secured: {
        sasl: `${LOOPBACK}:${sasl}`,
        saslTls: `${LOOPBACK}:${saslTls}`,
        mutualTls: `${LOOPBACK}:${mutualTls}`,
      },
      setPassword: (name, password) =>
        changeScramUser({ jars, broker: cluster.brokers[0] ?? '', name, password }),
      async dispose() {
        await Promise.all(cluster.nodes.map((node) => node.kill('SIGKILL')))
        await remove()
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}
