import type { Cluster, Consumer, Kafka } from 'kafkajs'
import type { CommittedOffset } from '#libs/ports/event-log/event-log.js'
import { ExpectedRetryError } from '#libs/runtime/errors.js'
import { Backoff, beforeDeadline, unlessAborted } from '#libs/runtime/timing.js'
import { makeConsumer } from './kafka-cluster.js'

interface GroupMemberSpec {
  /** Creates a client. Called for each membership. */
  kafka: () => Kafka
  groupId: string
  /** With the prefix. */
  topic: string
  /** Called with the partitions assigned from now on; none if the group has more members than partitions. */
  onAssigned(partitions: readonly number[], memberId: string): void
  /** Called when the membership has ended. Another member may have the partitions. */
  onLost(): void
  onError: (error: unknown) => void
}

/** A member that died leaves the group after this time. Its partitions are not read until then. */
const SESSION_MS = 10_000
/** A member learns within this time that another one has joined or left. */
const HEARTBEAT_MS = 1_000
const REBALANCE_MS = 20_000
/** How often kafkajs checks whether a heartbeat is due. */
const ROUND_MS = 100
const LEAVE_WITHIN_MS = 10_000
const REJOIN_BACKOFF = { firstMs: 200, maxMs: 5_000 }
/** The maximum time that a broker needs to load its groups when it starts, or to move them to another broker. */
const COORDINATOR_STARTS_WITHIN_MS = 30_000
/** Errors while the group's coordinator starts or moves: codes 14 to 16 in kafkajs/src/protocol/error.js. */
const COORDINATOR_STARTS = new Set([
  'GROUP_LOAD_IN_PROGRESS',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR_FOR_GROUP',
])

/**
 * A member of a consumer group that fetches nothing. All partitions are paused in kafkajs, so that its rounds only send
 * heartbeats, independently of the handlers. If kafkajs ends the membership, a new one is started.
 */
export class GroupMember {
  private readonly generation = new Generation()
  private readonly leaving = new AbortController()
  private readonly backoff = new Backoff(REJOIN_BACKOFF)
  private joined: { consumer: Consumer; cluster: Cluster } | null = null
  private loop: Promise<void> = Promise.resolve()
  /** When joining first failed since the last successful join. */
  private failingSinceMs: number | null = null

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

  /** For `commitAs`. Resolves within about a second after an assignment, rejects if the membership ends. */
  get membership(): Promise<Membership> {
    return this.generation.known
  }

  /**
   * Commits offsets in one request, as the membership that the partitions were assigned to. kafkajs's own commit would be
   * retried with a later membership, and could overwrite the offset of the partition's next owner. It also does not report
   * if it did nothing.
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

  /** Resolves once the member has left the group, or the group can't be reached. */
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
      await this.join(signal).catch((error: unknown) => {
        if (signal.aborted) return
        const failingForMs = performance.now() - (this.failingSinceMs ??= performance.now())
        this.spec.onError(asExpectedRetry(error, failingForMs))
      })
      await this.backoff.wait(signal)
    }
  }

  /** Joins the group. Rejects once the membership has ended, by an abort or otherwise, and the member has left. */
  private async join(signal: AbortSignal): Promise<void> {
    const { groupId, topic } = this.spec
    const { consumer, cluster } = makeConsumer(this.spec.kafka(), {
      groupId,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      maxWaitTimeInMs: ROUND_MS,
      // A restart by kafkajs can't be stopped once it has begun.
      retry: { restartOnFailure: () => Promise.resolve(false) },
    })
    const crashed = Promise.withResolvers<never>()
    // Its rejection may come before `run` has resolved.
    crashed.promise.catch(() => undefined)
    consumer.on(consumer.events.CRASH, ({ payload }) => crashed.reject(payload.error))
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      // This event is emitted after joining and before the first fetch.
      consumer.pause([{ topic }])
      this.backoff.reset()
      this.failingSinceMs = null
      this.generation.assigned(payload.memberId)
      if (!signal.aborted) this.spec.onAssigned(payload.memberAssignment[topic] ?? [], payload.memberId)
    })
    consumer.on(consumer.events.HEARTBEAT, ({ payload: { memberId, groupGenerationId: generation } }) => {
      this.generation.heartbeat({ memberId, generation })
    })
    try {
      this.joined = { consumer, cluster }
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false })
      await unlessAborted(crashed.promise, signal)
    } finally {
      this.joined = null
      this.generation.end()
      this.spec.onLost()
      await beforeDeadline(LEAVE_WITHIN_MS, consumer.disconnect()).catch(this.spec.onError)
    }
  }
}

/** Returns an ExpectedRetryError if the group's coordinator is still starting, otherwise the error itself. */
export function asExpectedRetry(error: unknown, failingForMs: number): unknown {
  if (!(error instanceof Error) || !('type' in error) || failingForMs > COORDINATOR_STARTS_WITHIN_MS)
    return error
  if (!COORDINATOR_STARTS.has(String(error.type))) return error
  return new ExpectedRetryError(error.message, { cause: error })
}

/** Identifies a member to the brokers, which accept commits of the group's current generation only. */
export interface Membership {
  memberId: string
  generation: number
}

/**
 * The generation of the group that a member is in. It is read from heartbeats, because kafkajs reports it nowhere else.
 * Each change of the group starts the next generation.
 */
export class Generation {
  private latest = -1
  private memberId: string | null = null
  private isKnown = false
  private pending = unsettled()

  /** Resolves with the first heartbeat after the latest assignment. Rejects if the membership ends first. */
  get known(): Promise<Membership> {
    return this.pending.promise
  }

  assigned(memberId: string): void {
    if (memberId !== this.memberId) this.end()
    if (this.isKnown) this.pending = unsettled()
    this.memberId = memberId
    this.isKnown = false
  }

  heartbeat(membership: Membership): void {
    // A response may arrive late, after the member has joined again.
    if (membership.memberId !== this.memberId || membership.generation <= this.latest) return
    this.latest = membership.generation
    this.isKnown = true
    this.pending.resolve(membership)
  }

  end(): void {
    this.pending.reject(new Error('the membership in the group has ended'))
    this.pending = unsettled()
    this.latest = -1
    this.memberId = null
    this.isKnown = false
  }
}

/** A promise whose rejection need not be handled. */
function unsettled(): PromiseWithResolvers<Membership> {
  const pending = Promise.withResolvers<Membership>()
  pending.promise.catch(() => undefined)
  return pending
}
