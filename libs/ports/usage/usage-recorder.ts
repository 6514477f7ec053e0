import { type EventSource, type Recorded, usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { LogRecord, LogAppender } from '#libs/ports/event-log/event-log.js'
import { PeriodicTask } from '#libs/runtime/timing.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import {
  countedBy,
  MAX_SHARED,
  type ApiRequestServed,
  type MailAccepted,
  type MessageShown,
  type UsageEvent,
  type UsageTopicEvent,
} from '#libs/domain/usage/usage-events.js'
import { chunksOf } from '#libs/runtime/chunks.js'

export interface UsageRecorderOptions {
  log: LogAppender
  source: EventSource
  now: () => Date
  /** Called with the number of events that were dropped, and with the last failure. */
  onLost: (count: number, error: unknown) => void
  everyMs?: number
}

/** The account and environment that an event counts for. */
export type UsageTenant = Pick<Recorded<unknown>, 'accountId' | 'environment'>

/** An event that counts mails, each with a time. */
type TimedMails = MailAccepted | MessageShown
/** More of them can be added. */
type SharedMails = TimedMails & { ms: number[] }

interface PendingEvent<Event extends UsageEvent = UsageEvent> {
  event: Event
  tenant: UsageTenant
}

/** A record that could not be appended. It keeps its id, so that consumers recognize a duplicate. */
interface PendingRecord {
  record: LogRecord
  /** Its events. */
  count: number
}

const APPEND_EVERY_MS = 500
/** Events that are encoded at once. That blocks the event loop for a few milliseconds. */
const CHUNK = 500
/** Events in one record. */
const MAX_TOGETHER = 40
/** About 50 MB, of which requests and mails share few. If there are more events, the oldest are dropped. */
const MAX_PENDING = 50_000
/**
 * Refused requests of one key share an event if they have the same method, route and labels. All kinds beyond this
 * number share one more event, so that a key cannot fill the log with refused requests.
 */
const MAX_REFUSED_KINDS = 10

/**
 * Collects usage events in memory and appends them in the background, so that requests and mails don't wait for the
 * log. If the process is killed, it loses the events of the last half second and those that are being appended. While
 * the log is unavailable, up to MAX_PENDING events are kept. An append that may have succeeded is repeated with the same
 * event id, by which consumers recognize a duplicate.
 */
export class UsageRecorder {
  private readonly pending: PendingEvent[] = []
  /** Records of one chunk that could not be appended. They are appended before everything else. */
  private rejected: PendingRecord[] = []
  /** Pending events that further refused requests may share, by key, then by method, route and labels. */
  private readonly refused = new Map<KeyId, Map<string, PendingEvent<ApiRequestServed>>>()
  /** Pending events that further mails may share, by what they have in common. */
  private readonly timed = new Map<string, PendingEvent<SharedMails>>()
  private failure: unknown = null
  private readonly appending: PeriodicTask

  constructor(private readonly options: UsageRecorderOptions) {
    const everyMs = options.everyMs ?? APPEND_EVERY_MS
    this.appending = new PeriodicTask({ work: () => this.appendAll(), everyMs, firstAfterMs: everyMs })
    this.appending.start()
  }

  /** Returns at once. */
  record(event: UsageEvent, tenant: UsageTenant): void {
    if (event.type === 'ApiRequestServed' && event.isRefused) this.recordRefused(event, tenant)
    else if (event.type === 'MailAccepted' || event.type === 'MessageShown') this.recordTimed(event, tenant)
    else this.pending.push({ event, tenant })
    if (this.pending.length > MAX_PENDING) this.lose(this.takePending().length)
  }

  /** Resolves once every recorded event is durable, or was dropped because the log is unavailable. */
  async close(): Promise<void> {
    await this.appending.stop()
    await this.appendAll()
    this.lose(this.rejected.reduce((sum, { count }) => sum + count, this.pending.length))
  }

  private recordRefused(event: ApiRequestServed, tenant: UsageTenant): void {
    const kinds = this.refused.get(event.keyId) ?? new Map<string, PendingEvent<ApiRequestServed>>()
    this.refused.set(event.keyId, kinds)
    const name = `${event.method} ${event.route} ${JSON.stringify(event.labels)}`
    const isKnown = kinds.has(name) || kinds.size < MAX_REFUSED_KINDS
    const kind = isKnown ? name : 'any'
    const shared = kinds.get(kind)
    if (shared !== undefined && shared.event.count < MAX_SHARED) {
      shared.event = merge(shared.event, event)
      return
    }
    const first = isKnown ? event : { ...event, route: 'unknown', inboxId: null, labels: {} }
    const pending = { event: first, tenant }
    kinds.set(kind, pending)
    this.pending.push(pending)
  }

  private recordTimed(event: TimedMails, tenant: UsageTenant): void {
    const { type, keyId, labels, ms, at } = event
    const second = Math.floor(at.getTime() / 1_000)
    const common = `${type} ${second} ${keyId} ${tenant.environment} ${JSON.stringify(labels)}`
    const shared = this.timed.get(common)
    if (shared !== undefined && countedBy(shared.event) < MAX_SHARED) {
      shared.event.ms.push(...ms)
      return
    }
    const pending = { event: { ...event, ms: [...ms] }, tenant }
    this.timed.set(common, pending)
    this.pending.push(pending)
  }

  /** Stops at the first chunk that fails. Its records are appended again in the next round. */
  private async appendAll(): Promise<void> {
    while (this.pending.length + this.rejected.length > 0) {
      const records = this.rejected.length > 0 ? this.rejected : this.encodeAll(this.takePending())
      const settled = await Promise.allSettled(
        records.map(({ record }) => this.options.log.append('usage-events', record)),
      )
      this.rejected = records.filter((_, index) => settled[index]?.status === 'rejected')
      if (this.rejected.length === 0) continue
      this.failure = settled.find((each) => each.status === 'rejected')?.reason
      return
    }
  }

  /** Encodes the events of a key and environment together, except those that count several requests or mails. */
  private encodeAll(events: readonly PendingEvent[]): PendingRecord[] {
    const groupOf = ({ event, tenant }: PendingEvent) =>
      countedBy(event) > 1 ? event : `${event.keyId} ${tenant.environment}`
    return [...Map.groupBy(events, groupOf).values()].flatMap((ofKey) =>
      [...chunksOf(ofKey, MAX_TOGETHER)].map((together) => this.encode(together)),
    )
  }

  private encode(together: readonly PendingEvent[]): PendingRecord {
    const [first] = together
    if (first === undefined) throw new RangeError('a record has at least one event')
    const { accountId, environment } = first.tenant
    const { source, now } = this.options
    const { keyId } = first.event
    const events = together.map(({ event }) => event)
    const event: UsageTopicEvent =
      events.length === 1 ? first.event : { type: 'UsageRecorded', keyId, events }
    const occurrence = { id: mintId('evt'), time: now(), source, accountId, environment, keyId }
    return { record: usageEventCodec.encode({ ...occurrence, event }), count: events.length }
  }

  /** Takes the oldest events, at most a chunk. */
  private takePending(): PendingEvent[] {
    // These events may soon be on the log, so no more requests and mails may share them.
    this.refused.clear()
    this.timed.clear()
    return this.pending.splice(0, CHUNK)
  }

  private lose(count: number): void {
    if (count > 0) this.options.onLost(count, this.failure)
  }
}

/** Merges a request into an event that may already count several. */
function merge(first: ApiRequestServed, next: ApiRequestServed): ApiRequestServed {
  const mean = (one: number, other: number) => (one * first.count + other) / (first.count + 1)
  return {
    ...first,
    count: first.count + 1,
    inboxId: first.inboxId === next.inboxId ? first.inboxId : null,
    durationMs: Math.round(mean(first.durationMs, next.durationMs) * 1_000) / 1_000,
    requestBytes: Math.round(mean(first.requestBytes, next.requestBytes)),
    responseBytes: Math.round(mean(first.responseBytes, next.responseBytes)),
  }
}
