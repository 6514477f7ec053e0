import { type Occurrence, type Recorded, usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { LogRecord, LogAppender } from '#libs/ports/event-log/event-log.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import { MAX_SHARED, type ApiRequestServed, type UsageEvent } from '#libs/domain/usage/usage-events.js'

export interface UsageRecorderOptions {
  log: LogAppender
  source: Occurrence<unknown>['source']
  now: () => Date
  /** Told how many events were given up, and why. */
  onLost: (count: number, error: unknown) => void
  everyMs?: number
}

/** Whose an event is. */
export type UsageTenant = Pick<Recorded<unknown>, 'accountId' | 'environment'>

interface Gathered<Event extends UsageEvent = UsageEvent> {
  event: Event
  tenant: UsageTenant
}

/** Encoded once: what is appended again has the same event id. */
type Waiting = Gathered | LogRecord

const APPEND_EVERY_MS = 500
/** Encoded at once: a few milliseconds' work, for which others wait. */
const CHUNK = 500
/** About 50 MB: past it the oldest are given up. */
const MAX_WAITING = 50_000
/**
 * Events of one key's refused requests within one gathering, by method, route and labels. Further ones share another
 * event, so that a key cannot fill the log with what it is refused.
 */
const MAX_REFUSED_KINDS = 10

/**
 * Gathers usage events off the way of requests and mails, and appends them together. A process that is killed takes
 * along what came in the last half second and what is being appended; while the log is away as much is kept as there is
 * room for. What the log may have taken before it failed to say so is appended again under the same event id, by which
 * whoever counts knows it.
 */
export class UsageRecorder {
  private waiting: Waiting[] = []
  /** Events of refused requests that further ones may share, by key and by method, route and labels. */
  private readonly refused = new Map<KeyId, Map<string, Gathered<ApiRequestServed>>>()
  private failure: unknown = null
  private readonly appending: Repetition

  constructor(private readonly options: UsageRecorderOptions) {
    const everyMs = options.everyMs ?? APPEND_EVERY_MS
    this.appending = new Repetition({ work: () => this.appendAll(), everyMs, firstAfterMs: everyMs })
    this.appending.start()
  }

  /** Returns at once. */
  record(event: UsageEvent, tenant: UsageTenant): void {
    if (event.type === 'ApiRequestServed' && event.isRefused) this.recordRefused(event, tenant)
    else this.waiting.push({ event, tenant })
    if (this.waiting.length > MAX_WAITING) this.giveUp(CHUNK)
  }

  /** Resolves once all that was recorded is durable, or was given up since the log does not take it. */
  async close(): Promise<void> {
    await this.appending.stop()
    await this.appendAll()
    this.giveUp(this.waiting.length)
  }

  private recordRefused(event: ApiRequestServed, tenant: UsageTenant): void {
    const kinds = this.refused.get(event.keyId) ?? new Map<string, Gathered<ApiRequestServed>>()
    this.refused.set(event.keyId, kinds)
    const name = `${event.method} ${event.route} ${JSON.stringify(event.labels)}`
    const isKnown = kinds.has(name) || kinds.size < MAX_REFUSED_KINDS
    const kind = isKnown ? name : 'any'
    const shared = kinds.get(kind)
    if (shared !== undefined && shared.event.count < MAX_SHARED) {
      shared.event = together(shared.event, event)
      return
    }
    const own = isKnown ? event : { ...event, route: 'unknown', inboxId: null, labels: {} }
    const gathered = { event: own, tenant }
    kinds.set(kind, gathered)
    this.waiting.push(gathered)
  }

  /** Up to the first chunk that fails: it waits for the next time. */
  private async appendAll(): Promise<void> {
    let hasFailed = false
    while (this.waiting.length > 0 && !hasFailed) {
      const chunk = this.takeWaiting(CHUNK).map((each) => this.encode(each))
      const settled = await Promise.allSettled(
        chunk.map((record) => this.options.log.append('usage-events', record)),
      )
      const failed = chunk.filter((_, index) => settled[index]?.status === 'rejected')
      hasFailed = failed.length > 0
      if (!hasFailed) continue
      this.failure = settled.find((each) => each.status === 'rejected')?.reason
      this.waiting = [...failed, ...this.waiting]
    }
  }

  private encode(waiting: Waiting): LogRecord {
    if (!('event' in waiting)) return waiting
    const { event, tenant } = waiting
    const { accountId, environment } = tenant
    const { source, now } = this.options
    const occurrence = { id: mintId('evt'), time: now(), source, accountId, environment }
    return usageEventCodec.encode({ ...occurrence, keyId: event.keyId, event })
  }

  private takeWaiting(count: number): Waiting[] {
    // What is taken may be on the log soon: nothing is added to it.
    this.refused.clear()
    return this.waiting.splice(0, count)
  }

  private giveUp(count: number): void {
    const lost = this.takeWaiting(count).length
    if (lost > 0) this.options.onLost(lost, this.failure)
  }
}

/** One event for two, of which the first may stand for many. */
function together(first: ApiRequestServed, next: ApiRequestServed): ApiRequestServed {
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
