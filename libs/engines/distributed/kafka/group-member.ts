import { once } from 'node:events'
import type { Cluster, Consumer, Kafka } from 'kafkajs'
import type { CommittedOffset } from '#libs/ports/event-log/event-log.js'
import { ExpectedRetryError } from '#libs/runtime/errors.js'
import { GrowingPause, pauseUntilAborted } from '#libs/runtime/timing/waiting.js'
import { makeConsumer } from './kafka-cluster.js'

interface GroupMemberSpec {
  /** Makes a client of its own for each membership. */
  kafka: () => Kafka
  groupId: string
  /** As the brokers know it. */
  topic: string
  /** Called with the partitions from now on: none if the group has more members than partitions. */
  onAssigned(partitions: readonly number[], memberId: string): void
  /** The membership has ended: another member may have the partitions. */
  onLost(): void
  /** The membership goes on, but its partitions may have been another member's in between. */
  onMissed(): void
  onError: (error: unknown) => void
}

/** A member that died is out of the group after that; its partitions wait as long. */
const SESSION_MS = 10_000
/** How soon a member learns that another one came or went. */
const HEARTBEAT_MS = 1_000
const REBALANCE_MS = 20_000
/** How often kafkajs comes by to see whether a heartbeat is due. */
const ROUND_MS = 100
const LEAVE_WITHIN_MS = 10_000
const JOIN_AGAIN = { firstMs: 200, mostMs: 5_000 }
/** How long a broker may need to load its groups when it starts, or to hand them to another one. */
const COORDINATOR_STARTS_WITHIN_MS = 30_000
/** The group's coordinator starts or moves: kafkajs/src/protocol/error.js, codes 14 to 16. */
const COORDINATOR_STARTS = new Set([
  'GROUP_LOAD_IN_PROGRESS',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR_FOR_GROUP',
])

/**
 * Is a member of a consumer group and fetches nothing: all partitions are paused in kafkajs, whose rounds then only
 * send heartbeats, whatever the handlers do. Whenever kafkajs gives the membership up, a new one begins.
 */
export class GroupMember {
  private readonly generation = new Generation()
  private readonly leaving = new AbortController()
  private readonly again = new GrowingPause(JOIN_AGAIN)
  private joined: { consumer: Consumer; cluster: Cluster } | null = null
  private loop: Promise<void> = Promise.resolve()
  /** When joining first failed since the last successful join. */
  private outsideSinceMs: number | null = null

  constructor(private readonly spec: GroupMemberSpec) {}

  start(): void {
    this.loop = this.run()
  }

  /** Commits an offset. Rejects if the membership has ended. */
  async commit(partition: number, offset: number): Promise<void> {
    await this.requireJoined().consumer.commitOffsets([
      { topic: this.spec.topic, partition, offset: String(offset) },
    ])
  }

  /** What `commitAs` needs: resolves within about a second of an assignment, rejects if the membership ends. */
  get membership(): Promise<Membership> {
    return this.generation.known
  }

  /**
   * Commits offsets in one request, under the membership that the partitions were assigned to. kafkajs's own commit would
   * try again under a later membership, by which it could overwrite the offset of a partition's next owner; and it does
   * not say if it did nothing.
   */
  async commitAs({ memberId, generation }: Membership, offsets: readonly CommittedOffset[]): Promise<void> {
    const { groupId, topic } = this.spec
    const coordinator = await this.requireJoined().cluster.findGroupCoordinator({ groupId })
    const partitions = offsets.map(({ partition, offset, note }) => ({
      partition,
      offset: String(offset),
      metadata: note,
    }))
    await coordinator.offsetCommit({
      groupId,
      memberId,
      groupGenerationId: generation,
      topics: [{ topic, partitions }],
    })
  }

  /** Resolves once the group knows that the member has gone, or can't be reached. */
  async stop(): Promise<void> {
    this.leaving.abort()
    await this.loop
  }

  private requireJoined() {
    if (this.joined === null) throw new Error(`${this.spec.groupId} is not in its group`)
    return this.joined
  }

  private async run(): Promise<void> {
    const { signal } = this.leaving
    while (!signal.aborted) {
      await this.takePart(signal).catch((error: unknown) => {
        if (signal.aborted) return
        const outsideForMs = performance.now() - (this.outsideSinceMs ??= performance.now())
        this.spec.onError(asExpectedRetry(error, outsideForMs))
      })
      await this.again.wait(signal)
    }
  }

  /** Resolves once the member has left, rejects if its membership broke. */
  private async takePart(signal: AbortSignal): Promise<void> {
    const { groupId, topic } = this.spec
    const { consumer, cluster } = makeConsumer(this.spec.kafka(), {
      groupId,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      maxWaitTimeInMs: ROUND_MS,
      // A restart by kafkajs itself can't be stopped while it is under way.
      retry: { restartOnFailure: () => Promise.resolve(false) },
    })
    const crashed = Promise.withResolvers<never>()
    crashed.promise.catch(() => undefined)
    consumer.on(consumer.events.CRASH, ({ payload }) => crashed.reject(payload.error))
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      // Told between the joining and the first fetch.
      consumer.pause([{ topic }])
      this.again.reset()
      this.outsideSinceMs = null
      this.generation.assigned(payload.memberId)
      if (!signal.aborted) this.spec.onAssigned(payload.memberAssignment[topic] ?? [], payload.memberId)
    })
    consumer.on(consumer.events.HEARTBEAT, ({ payload: { memberId, groupGenerationId: generation } }) => {
      if (!this.generation.heard({ memberId, generation })) this.spec.onMissed()
    })
    try {
      this.joined = { consumer, cluster }
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false })
      await Promise.race([crashed.promise, abortOf(signal)])
    } finally {
      this.joined = null
      this.generation.end()
      this.spec.onLost()
      await this.leave(consumer)
    }
  }

  private async leave(consumer: Consumer): Promise<void> {
    const late = new AbortController()
    const left = consumer.disconnect().catch(this.spec.onError)
    await Promise.race([left, pauseUntilAborted(LEAVE_WITHIN_MS, late.signal)])
    late.abort()
  }
}

async function abortOf(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** The error, as an expected retry if the group's coordinator is still starting. */
export function asExpectedRetry(error: unknown, failingForMs: number): unknown {
  if (!(error instanceof Error) || !('type' in error) || failingForMs > COORDINATOR_STARTS_WITHIN_MS)
    return error
  if (!COORDINATOR_STARTS.has(String(error.type))) return error
  return new ExpectedRetryError(error.message, { cause: error })
}

/** What a broker knows a member by: it takes commits of the group's present generation alone. */
export interface Membership {
  memberId: string
  generation: number
}

/**
 * Which generation of its group a member is in, learnt from its heartbeats: kafkajs reports it nowhere else. Each
 * change of the group begins the next one.
 */
export class Generation {
  private last: Membership | null = null
  private memberId: string | null = null
  /** Since the last heartbeat that named a generation. */
  private assignments = 0
  private telling = unanswered()

  /** Resolves once a heartbeat has been answered since the last assignment; rejects if the membership ends first. */
  get known(): Promise<Membership> {
    return this.telling.promise
  }

  assigned(memberId: string): void {
    if (memberId !== this.memberId) this.end()
    if (this.last !== null && this.assignments === 0) this.telling = unanswered()
    this.memberId = memberId
    this.assignments += 1
  }

  /**
   * False if a generation may have gone by between two assignments without the member's knowing: what it has may
   * have been another's meanwhile.
   */
  heard(membership: Membership): boolean {
    const { last, assignments } = this
    // An answer may come late, while the member joins again.
    const isOld = membership.memberId !== this.memberId || membership.generation <= (last?.generation ?? -1)
    if (isOld) return true
    this.last = membership
    this.assignments = 0
    this.telling.resolve(membership)
    return last === null ? assignments === 1 : membership.generation === last.generation + assignments
  }

  /** The membership is over. */
  end(): void {
    this.telling.reject(new Error('the membership in the group has ended'))
    this.telling = unanswered()
    this.last = null
    this.memberId = null
    this.assignments = 0
  }
}

function unanswered(): PromiseWithResolvers<Membership> {
  const telling = Promise.withResolvers<Membership>()
  telling.promise.catch(() => undefined)
  return telling
}
