import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { AccountId, InboxId } from '#libs/domain/ids/typeid.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import type { InboxRow } from '#libs/ports/read-model/views.js'
import { Budget, type Release } from '#libs/runtime/fair-share.js'

/*
 * Counts mail in flight, which the views don't show yet: its bytes for each account, so that an account can't delay
 * others (InFlightMail), and its number for each inbox, so that an inbox is filled exactly (InboxCapacity).
 */

export interface InFlightMailOptions {
  inboxes: Pick<InboxQueries, 'progress'>
  /** The budget of all accounts. */
  maxBytes: number
  /** Called when a mail has waited too long. */
  onExhausted: () => void
}

/**
 * The budget of one account. The views of a partition are updated record by record, about 100 MiB or a few thousand
 * mails per second, so this much mail delays the events of other accounts by a few dozen milliseconds.
 */
const MAX_ACCOUNT_BYTES = 4 * 1024 * 1024
/** Added to the bytes of each mail, so that the number of small mails is bounded. */
const MAIL_BYTES = 64 * 1024
const WAIT_MS = 10_000
/** A mail counts for at most this long, even if the views don't show it yet. */
const MAX_IN_FLIGHT_MS = 1_000
/** If the views have not advanced for this long, they have stopped, and mail does not wait for them. */
const STOPPED_MS = 5_000
const POLL_EVERY_MS = 10

interface Appended {
  offset: number
  appendedAtMs: number
  release: Release
}

/**
 * A budget of mail in flight for each account. A mail counts from before it is sealed until the views show it. An
 * account that sends faster than the views are updated must wait, so that it does not delay other accounts.
 */
export class InFlightMail {
  private readonly budget: Budget
  /** The mails of each partition, in the order of the log. */
  private readonly appended = new Map<number, Appended[]>()
  /** The position of the views in partitions that lag, and the time since which it has not changed. */
  private readonly lagging = new Map<number, { position: number; sinceMs: number }>()
  private isClosed = false

  constructor(private readonly options: InFlightMailOptions) {
    const { maxBytes: total, onExhausted } = options
    this.budget = new Budget({ total, perOwner: MAX_ACCOUNT_BYTES, waitMs: WAIT_MS, onExhausted })
  }

  /**
   * Resolves once an account may send a mail of that many uncompressed bytes. Rejects with BudgetExhaustedError after
   * ten seconds, or with the signal's reason if the signal aborts while waiting. Does not wait while the views of any
   * partition have stopped.
   */
  async take(accountId: AccountId, bytes: number, signal: AbortSignal): Promise<Release> {
    const amount = bytes + MAIL_BYTES
    // Ignores the signal at first, because some clients disconnect without reading the last reply.
    const release = this.budget.tryTake(accountId, amount)
    if (release !== null) return release
    return this.haveViewsStopped() ? () => undefined : this.budget.take(accountId, amount, signal)
  }

  /** Calls `release` once the views show the record at a position, or after a second. */
  releaseWhenVisible({ topic, partition, offset }: Position, release: Release): void {
    const mail = { offset, appendedAtMs: performance.now(), release }
    const waiting = this.appended.get(partition)
    if (waiting !== undefined) {
      waiting.push(mail)
      return
    }
    this.appended.set(partition, [mail])
    void this.follow({ topic, partition, offset })
  }

  /** Stops polling the views. */
  close(): void {
    this.isClosed = true
  }

  /** Polls a partition's views while mail waits for them. */
  private async follow({ topic, partition }: Position): Promise<void> {
    for (let waiting = this.appended.get(partition) ?? []; waiting.length > 0;) {
      await pause(POLL_EVERY_MS, undefined, { ref: false })
      if (this.isClosed) return
      const progress = await this.options.inboxes.progress({ topic, partition }).catch(() => null)
      const position = progress?.position ?? 0
      const nowMs = performance.now()
      if (waiting.every(({ offset }) => offset < position)) this.lagging.delete(partition)
      else if (position > (this.lagging.get(partition)?.position ?? -1)) {
        this.lagging.set(partition, { position, sinceMs: nowMs })
      }
      const oldestMs = nowMs - MAX_IN_FLIGHT_MS
      const isOver = ({ offset, appendedAtMs }: Appended) => offset < position || appendedAtMs < oldestMs
      for (const { release } of waiting.filter(isOver)) release()
      waiting = waiting.filter((mail) => !isOver(mail))
      if (waiting.length > 0) this.appended.set(partition, waiting)
      else this.appended.delete(partition)
    }
  }

  private haveViewsStopped(): boolean {
    const oldestMs = performance.now() - STOPPED_MS
    return [...this.lagging.values()].some(({ sinceMs }) => sinceMs < oldestMs)
  }
}

/** Capacity of an inbox that is reserved for one mail. */
export interface Reservation {
  /** Call this once the mail is on the log, at that offset. It counts until the inbox's row has reached the offset. */
  fill(offset: number): void
  /** Releases the capacity unless it was filled. Can be repeated. */
  release(): void
}

/** Mails that an inbox's row may not count yet: those being accepted, and those on the log at these offsets. */
interface Uncounted {
  inProgress: number
  offsets: Set<number>
}

const MAX_INBOXES = 10_000
/** Longer than the views take to show a mail: if they lag further behind, mail is refused. */
const MAX_UNCOUNTED_MS = 60_000

/**
 * Counts the mails of each inbox that this process is accepting, or has appended and the views don't show yet, so that
 * concurrent mails fill an inbox exactly. It does not know the mails of other processes.
 */
export class InboxCapacity {
  private readonly uncounted = new LRUCache<InboxId, Uncounted>({ max: MAX_INBOXES, ttl: MAX_UNCOUNTED_MS })

  /** Reserves capacity for one mail. Null if the inbox is full. Call this as soon as the row has been read. */
  reserve({ inbox, endOffset }: InboxRow): Reservation | null {
    if (inbox.state !== 'active') return null
    const { id, messageCount, maxMessages } = inbox
    const uncounted = this.uncounted.get(id) ?? { inProgress: 0, offsets: new Set() }
    const { offsets } = uncounted
    for (const offset of offsets) {
      if (offset >= endOffset) break
      offsets.delete(offset)
    }
    if (messageCount + uncounted.inProgress + offsets.size >= maxMessages) return null
    uncounted.inProgress += 1
    this.uncounted.set(id, uncounted)
    let isInProgress = true
    const release = () => {
      if (isInProgress) uncounted.inProgress -= 1
      isInProgress = false
    }
    const fill = (offset: number) => {
      release()
      offsets.add(offset)
    }
    return { fill, release }
  }
}
