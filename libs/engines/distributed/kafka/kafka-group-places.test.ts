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
const SETTLED_WITHIN_MS = 20_000
const notAssigned = { name: 'NotAssignedError' }

describeOn('kafka')('Kafka event log: places of a group whose members change', () => {
  let harness: Awaited<ReturnType<typeof makeLog>>
  beforeEach(async () => {
    harness = await makeLog()
  })
  afterEach(() => harness.close())

  const place = (partition: number, offset: number, note: string): CommittedOffset => ({
    ...{ topic: TOPIC, partition, offset, note },
  })
  const partitionsOf = (consumer: Consumer) => consumer.positions().map(({ partition }) => partition)
  const committed = () => harness.log.committed('group', TOPIC)

  /** Begins where it likes, and counts how often it was asked where that is. */
  async function consumeByItself(told: () => Promise<unknown> = () => Promise.resolve()) {
    const asked = Array.from({ length: PARTITIONS }, () => 0)
    const consumer = await harness.log.consume(
      consumerOf(new Arrivals(), {
        async startAt({ partition, first }) {
          asked[partition] = (asked[partition] ?? 0) + 1
          await told()
          return { offset: first }
        },
      }),
    )
    return { consumer, asked }
  }

  async function toHave(consumer: Consumer, count: number): Promise<number[]> {
    return until(
      `${count} partitions`,
      () => consumer.positions().length === count && partitionsOf(consumer),
      SETTLED_WITHIN_MS,
    )
  }

  it('asks again for the starts of partitions that were another’s and come back, and takes places of its own alone', async () => {
    const { consumer: first, asked } = await consumeByItself()
    await first.commit([
      place(0, 1, 'first'),
      place(1, 1, 'first'),
      place(2, 1, 'first'),
      place(3, 1, 'first'),
    ])
    const { consumer: second } = await consumeByItself()
    const theirs = await toHave(second, EACH)
    const kept = await toHave(first, EACH)
    const before = [...asked]
    await expect(first.commit(theirs.map((n) => place(n, 9, 'late')))).rejects.toMatchObject(notAssigned)
    await expect(first.commit([...kept, ...theirs].map((n) => place(n, 9, 'late')))).rejects.toMatchObject(
      notAssigned,
    )
    await second.commit(theirs.map((n) => place(n, 2, 'second')))
    await first.commit(kept.map((n) => place(n, 3, 'first')))
    expect(await committed()).toEqual(
      [...kept.map((n) => place(n, 3, 'first')), ...theirs.map((n) => place(n, 2, 'second'))].sort(
        (one, other) => one.partition - other.partition,
      ),
    )
    await second.stop()
    await toHave(first, PARTITIONS)
    for (const partition of theirs) expect(asked[partition]).toBeGreaterThan(before[partition] ?? NaN)
    await first.commit(theirs.map((n) => place(n, 4, 'first again')))
    await first.stop()
  })

  it('takes no place of a partition that comes back before its start has been told', async () => {
    let told = Promise.withResolvers<undefined>()
    told.resolve(undefined)
    const { consumer: first, asked } = await consumeByItself(() => told.promise)
    const { consumer: second } = await consumeByItself()
    const [theirs = NaN] = await toHave(second, EACH)
    await toHave(first, EACH)
    const before = asked[theirs] ?? NaN
    told = Promise.withResolvers()
    await second.stop()
    const isAsked = () => (asked[theirs] ?? 0) > before
    await until('the partition to come back', isAsked, SETTLED_WITHIN_MS)
    await expect(first.commit([place(theirs, 1, 'from before')])).rejects.toMatchObject(notAssigned)
    told.resolve(undefined)
    await toHave(first, PARTITIONS)
    await first.commit([place(theirs, 2, 'after')])
    await first.stop()
  })

  it('takes no last places of partitions that went to another while a consumer stops', async () => {
    const { consumer: first } = await consumeByItself()
    // Its generation is known from here on: one that it might have missed would cost it all that it has.
    await first.commit([place(0, 0, '')])
    const joined = Promise.withResolvers<Consumer>()
    await first.stop(async () => {
      const { consumer: second } = await consumeByItself()
      joined.resolve(second)
      const [theirs = NaN] = await toHave(second, EACH)
      const [kept = NaN] = await toHave(first, EACH)
      await second.commit([place(theirs, 2, 'second')])
      await expect(first.commit([place(theirs, 1, 'late')])).rejects.toMatchObject(notAssigned)
      await first.commit([place(kept, 1, 'last')])
    })
    expect(
      (await committed())
        .map(({ note }) => note)
        .filter(Boolean)
        .sort(),
    ).toEqual(['last', 'second'])
    await (await joined.promise).stop()
  })

  it('takes nothing from a member on the strength of a generation that is over', async () => {
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
        onMissed: () => undefined,
        onError: (error) => failures.push(error),
      })
      member.start()
      return { member, count: () => assigned.length, assigned: () => assigned, failures }
    }
    const first = join()
    await until('all partitions', () => first.count() === PARTITIONS, SETTLED_WITHIN_MS)
    const old = await first.member.membership
    await first.member.commitAs(old, [place(0, 1, 'first')])
    const second = join()
    await until('two shares', () => first.count() === EACH && second.count() === EACH, SETTLED_WITHIN_MS)
    const [theirs = NaN] = second.assigned()
    await second.member.commitAs(await second.member.membership, [place(theirs, 2, 'second')])
    const late = first.member.commitAs(old, [place(theirs, 1, 'late')])
    await expect(late).rejects.toMatchObject({ type: 'ILLEGAL_GENERATION' })
    expect(await committed()).toContainEqual(place(theirs, 2, 'second'))
    await first.member.commitAs(await first.member.membership, [place(0, 3, 'in time')])
    await Promise.all([first.member.stop(), second.member.stop()])
    await expect(first.member.commitAs(old, [place(0, 9, 'late')])).rejects.toThrow('not in its group')
    expect([first.failures, second.failures]).toEqual([[], []])
  })
})
