import type { Occurrence, Recorded } from '#libs/event-log/cloud-event.js'
import type { EventLog, LogRecord } from '#libs/event-log/event-log.js'
import { usageEventCodec } from '#libs/event-log/usage-events.js'
import { Repetition } from '#libs/timing/repetition.js'
import { mintId } from '#libs/typeid/mint.js'
import type { UsageEvent } from './events.js'

export interface UsageRecorderOptions {
  log: Pick<EventLog, 'append'>
  source: Occurrence<unknown>['source']
  now: () => Date
  /** Told how many events were given up, and why. */
  onLost: (count: number, error: unknown) => void
  everyMs?: number
}

/** Whose an event is. */
export type UsageTenant = Pick<Recorded<unknown>, 'accountId' | 'environment'>

/** Encoded once: what is appended again has the same event id. */
type Waiting = { event: UsageEvent; tenant: UsageTenant } | LogRecord

const APPEND_EVERY_MS = 500
/** Encoded at once: a few milliseconds' work, for which others wait. */
const CHUNK = 500
/** About 50 MB: past it the oldest are given up. */
const MOST_WAITING = 50_000

/**
 * Gathers usage events off the way of requests and mails, and appends them together. A process that is killed takes
 * along what came in the last half second and what is being appended; while the log is away as much is kept as there is
 * room for. What the log may have taken before it failed to say so is appended again under the same event id, by which
 * whoever counts knows it.
 */
export class UsageRecorder {
  private waiting: Waiting[] = []
  private failure: unknown = null
  private readonly appending: Repetition

  constructor(private readonly options: UsageRecorderOptions) {
    const everyMs = options.everyMs ?? APPEND_EVERY_MS
    this.appending = new Repetition({ work: () => this.appendAll(), everyMs, firstAfterMs: everyMs })
    this.appending.start()
  }

  /** Returns at once. */
  record(event: UsageEvent, tenant: UsageTenant): void {
    this.waiting.push({ event, tenant })
    if (this.waiting.length > MOST_WAITING) this.giveUp(CHUNK)
  }

  /** Resolves once all that was recorded is durable, or was given up since the log does not take it. */
  async close(): Promise<void> {
    await this.appending.stop()
    await this.appendAll()
    this.giveUp(this.waiting.length)
  }

  /** Up to the first chunk that fails: it waits for the next time. */
  private async appendAll(): Promise<void> {
    let hasFailed = false
    while (this.waiting.length > 0 && !hasFailed) {
      const chunk = this.waiting.splice(0, CHUNK).map((each) => this.encode(each))
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

  private giveUp(count: number): void {
    const lost = this.waiting.splice(0, count).length
    if (lost > 0) this.options.onLost(lost, this.failure)
  }
}
