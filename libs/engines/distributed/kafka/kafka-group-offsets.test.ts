import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { Arrivals, consumerOf } from '#libs/ports/event-log/arrivals.contract.js'
import { PARTITIONS } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { Consumer, CommittedOffset } from '#libs/ports/event-log/event-log.js'
import { GroupMember } from './group-member.js'
import { makeKafka } from './kafka-client.js'
import { makeLog } from './kafka-log-harness.contract.js'

const TOPIC = 'inbox-events'
const EACH = PARTITIONS / 2
const SETTLED_WITHIN_MS = 60_000
const notAssigned = { name: 'NotAssignedError' }

describeOn('kafka')('Kafka event log: offsets of a group whose members change', () => {
  let harness: Awaited<ReturnType<typeof makeLog>>
  beforeEach(async () => {
    harness = await makeLog()
  })
  afterEach(() => harness.close())

  const offsetAt = (partition: number, offset: number, note: string): CommittedOffset => ({
    ...{ topic: TOPIC, partition, offset, note },
  })
  const partitionsOf = (consumer: Consumer) => consumer.positions().map(({ partition }) => partition)
  const committed = () => harness.log.committed('group', TOPIC)

  /** Consumes from offsets of its own, and counts how often each partition's start position was requested. */
  async function consumeFromStart(beforeStart: () => Promise<unknown> = () => Promise.resolve()) {
    const starts = Array.from({ length: PARTITIONS }, () => 0)
    const consumer = await harness.log.consume(
      consumerOf(new Arrivals(), {
        async startAt({ partition, first }) {
          starts[partition] = (starts[partition] ?? 0) + 1
          await beforeStart()
          return { offset: first }
        },
      }),
    )
    return { consumer, starts }
  }

  async function untilAssigned(consumer: Consumer, count: number): Promise<number[]> {
    return until(
      `${count} partitions`,
      () => consumer.positions().length === count && partitionsOf(consumer),
      SETTLED_WITHIN_MS,
    )
  }

  it('requests the start of a partition again when it is reassigned, and commits only for its own partitions', async () => {
    const { consumer: first, starts } = await consumeFromStart()
    await first.commit([
      offsetAt(0, 1, 'first'),
      offsetAt(1, 1, 'first'),
      offsetAt(2, 1, 'first'),
      offsetAt(3, 1, 'first'),
    ])
    const { consumer: second } = await consumeFromStart()
    const theirs = await untilAssigned(second, EACH)
    const kept = await untilAssigned(first, EACH)
    const before = [...starts]
    await expect(first.commit(theirs.map((n) => offsetAt(n, 9, 'late')))).rejects.toMatchObject(notAssigned)
    await expect(first.commit([...kept, ...theirs].map((n) => offsetAt(n, 9, 'late')))).rejects.toMatchObject(
      notAssigned,
    )
    await second.commit(theirs.map((n) => offsetAt(n, 2, 'second')))
    await first.commit(kept.map((n) => offsetAt(n, 3, 'first')))
    expect(await committed()).toEqual(
      [...kept.map((n) => offsetAt(n, 3, 'first')), ...theirs.map((n) => offsetAt(n, 2, 'second'))].sort(
        (one, other) => one.partition - other.partition,
      ),
    )
    await second.stop()
    await untilAssigned(first, PARTITIONS)
    for (const partition of theirs) expect(starts[partition]).toBeGreaterThan(before[partition] ?? NaN)
    await first.commit(theirs.map((n) => offsetAt(n, 4, 'first again')))
    await first.stop()
  })

  it('commits no offset of a reassigned partition before its start position is known', async () => {
    let started = Promise.withResolvers<undefined>()
    started.resolve(undefined)
    const { consumer: first, starts } = await consumeFromStart(() => started.promise)
    const { consumer: second } = await consumeFromStart()
    const [theirs = NaN] = await untilAssigned(second, EACH)
    await untilAssigned(first, EACH)
    const before = starts[theirs] ?? NaN
    started = Promise.withResolvers()
    await second.stop()
    const isRequested = () => (starts[theirs] ?? 0) > before
    await until('the partition to be reassigned', isRequested, SETTLED_WITHIN_MS)
    await expect(first.commit([offsetAt(theirs, 1, 'from before')])).rejects.toMatchObject(notAssigned)
    started.resolve(undefined)
    await untilAssigned(first, PARTITIONS)
    await first.commit([offsetAt(theirs, 2, 'after')])
    await first.stop()
  })

  it('rejects a commit of an old generation', async () => {
    const groupId = `${harness.options.topicPrefix}group.${TOPIC}`
    const join = () => {
      let assigned: readonly number[] = []
      const failures: unknown[] = []
      const member = new GroupMember({
        kafka: () => makeKafka(harness.options),
        groupId,
        topic: harness.options.topicPrefix + TOPIC,
        onAssigned: (partitions) => (assigned = partitions),
        onLost: () => (assigned = []),
        onError: (error) => failures.push(error),
      })
      member.start()
      return { member, count: () => assigned.length, assigned: () => assigned, failures }
    }
    const first = join()
    await until('all partitions', () => first.count() === PARTITIONS, SETTLED_WITHIN_MS)
    const old = await first.member.membership
    await first.member.commitAs(old, [offsetAt(0, 1, 'first')])
    const second = join()
    await until('two shares', () => first.count() === EACH && second.count() === EACH, SETTLED_WITHIN_MS)
    const [theirs = NaN] = second.assigned()
    await second.member.commitAs(await second.member.membership, [offsetAt(theirs, 2, 'second')])
    const late = first.member.commitAs(old, [offsetAt(theirs, 1, 'late')])
    await expect(late).rejects.toMatchObject({ type: 'ILLEGAL_GENERATION' })
    expect(await committed()).toContainEqual(offsetAt(theirs, 2, 'second'))
    await first.member.commitAs(await first.member.membership, [offsetAt(0, 3, 'in time')])
    await Promise.all([first.member.stop(), second.member.stop()])
    await expect(first.member.commitAs(old, [offsetAt(0, 9, 'late')])).rejects.toThrow('not in its group')
    expect([first.failures, second.failures]).toEqual([[], []])
  })
})
