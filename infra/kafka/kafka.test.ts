import { existsSync } from 'node:fs'
import { Kafka, logLevel, type Admin } from 'kafkajs'
import { startKafka, type KafkaCluster } from '#test/harness/kafka.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'

const TOPIC = 'kept'

describeWith('kafka')('a three-node Kafka', () => {
  let cluster: KafkaCluster
  let folder: string

  beforeAll(async () => {
    cluster = await startKafka({ nodes: 3, heapMib: 256 })
    folder = cluster.nodes[0]?.dataDir ?? ''
  }, 90_000)
  afterAll(async () => {
    await cluster.dispose()
    expect(existsSync(folder)).toBe(false)
  })

  it('keeps a topic while a node is down, and accepts the node again', async () => {
    const [first, second] = cluster.nodes
    if (first === undefined || second === undefined) throw new Error('too few nodes')
    await onNode(second.port, async (admin) => {
      expect((await admin.describeCluster()).brokers).toHaveLength(3)
      const topics = [{ topic: TOPIC, numPartitions: 1, replicationFactor: 3 }]
      expect(await admin.createTopics({ topics, waitForLeaders: false })).toBe(true)
      await until('each node to have the topic', async () => (await inSync(admin)).length === 3, 20_000)
    })
    const { pid } = first
    await first.kill('SIGKILL')
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    await onNode(second.port, (admin) =>
      until('the dead node to be missed', async () => (await inSync(admin)).length === 2, 20_000),
    )

    await first.restart()
    expect(first.pid).not.toBe(pid)
    await onNode(first.port, (admin) =>
      until('the node to have caught up', async () => (await inSync(admin)).length === 3, 20_000),
    )
  }, 90_000)
})

/** Empty while the queried node does not know the topic yet. */
async function inSync(admin: Admin): Promise<number[]> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [TOPIC] })
    return topics[0]?.partitions[0]?.isr ?? []
  } catch (error) {
    if (error instanceof Error && 'type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION') return []
    throw error
  }
}

async function onNode<Result>(port: number, work: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}
