import { installJars } from '#infra/kafka/jars.js'
import * as kafka from '#infra/kafka/kafka.js'
import { changeScramUser } from '#infra/kafka/scram-users.js'
import { freePorts, LOOPBACK } from '#infra/servers/ports.js'
import { inFolder } from './server-folder.js'

export type { KafkaNode } from '#infra/kafka/kafka.js'

/** A Kafka for one suite. It is stopped with the suite's process at the latest. */
export interface KafkaCluster extends kafka.KafkaCluster {
  /** Stops every node and removes their data. */
  dispose(): Promise<void>
  /** host:port of each listener that requires credentials, if they were requested. */
  secured: Readonly<Record<keyof kafka.SecuredListeners['ports'], string>>
  /** Sets a user's password for SCRAM-SHA-512; null removes it. */
  setPassword(name: string, password: string | null): Promise<void>
}

export interface StartKafkaOptions {
  nodes?: 1 | 3
  /** Added to server.properties; overrides the defaults. */
  settings?: kafka.KafkaOptions['settings']
  /** Maximum heap of each node. */
  heapMib?: number
  /** Attempts to download Kafka's jars, if they are missing. */
  attempts?: number
  /** Listeners that require credentials, in addition to the plain one; single node only. */
  secured?: Omit<kafka.SecuredListeners, 'ports'>
}

/** Makes Kafka do within seconds what by default takes minutes or hours. */
const SHORT_INTERVALS = {
  'log.cleaner.backoff.ms': 200,
  'log.retention.check.interval.ms': 500,
  'log.segment.delete.delay.ms': 500,
  'log.initial.task.delay.ms': 500,
  'broker.session.timeout.ms': 3_000,
  'broker.heartbeat.interval.ms': 500,
}

/** Starts it on free ports and an empty folder. Resolves once every node answers. */
export async function startKafka({
  nodes = 1,
  settings,
  heapMib,
  attempts = 1,
  secured,
}: StartKafkaOptions = {}): Promise<KafkaCluster> {
  const jars = await installJars({ attempts })
  const ports = await Promise.all(
    Array.from({ length: nodes }, async () => {
      const [clients = 0, controller = 0] = await freePorts(2)
      return { clients, controller }
    }),
  )
  const [sasl = 0, saslTls = 0, mutualTls = 0] = await freePorts(3)
  return inFolder('kafka', async (folder, life) => {
    const cluster = await kafka.startKafka({
      ...{ jars, folder, ports, life, isShortLived: true },
      settings: { ...SHORT_INTERVALS, ...settings },
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
      setPassword: (name: string, password: string | null) =>
        changeScramUser({ jars, broker: cluster.brokers[0] ?? '', name, password }),
    }
  })
}
