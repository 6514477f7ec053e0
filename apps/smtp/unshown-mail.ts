import { setTimeout as pause } from 'node:timers/promises'
import type { Position } from '#libs/ports/event-log/event-log.js'
import { Budget, type Release } from '#libs/runtime/fair-share.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import type { AccountId, InboxId } from '#libs/domain/ids/typeid.js'
import { LRUCache } from 'lru-cache'
import type { InboxRow } from '#libs/ports/read-model/views.js'

export interface UnshownMailOptions {
  inboxes: Pick<InboxQueries, 'progress'>
  /** The most that mail of all accounts may count at once. */
  maxBytes: number
  /** Called when a mail has waited too long. */
  onExhausted: () => void
}

/**
 * What one account may have on its way. A partition's views apply one record after the other, about 100 MiB or a few
 * thousand mails in a second, so that events of other accounts wait a few dozen milliseconds behind it.
 */
const MAX_ACCOUNT_BYTES = 4 * 1024 * 1024
/** What each mail counts beside its bytes, so that small ones are bounded in number. */
const MAIL_BYTES = 64 * 1024
const WAIT_MS = 10_000
/** Slow views hold nothing up for longer. */
const MAX_UNSHOWN_MS = 1_000
/** Views that show nothing for so long have stopped: nobody waits for them. */
const STOPPED_MS = 5_000
const LOOK_EVERY_MS = 10

interface Appended {
  offset: number
  appendedAtMs: number
  release: Release
}

/**
 * Mail on its way into the views, shared out by account. Each mail counts from before it is sealed until the views show
 * it, so that an account that sends faster than the views follow waits, and other accounts don't wait behind it.
 */
export class UnshownMail {
  private readonly budget: Budget
  /** By partition, in the order of the log. */
  private readonly appended = new Map<number, Appended[]>()
  /** How far the views of a partition are that don't show all mail, and since when. */
  private readonly behind = new Map<number, { position: number; sinceMs: number }>()
  private isClosed = false

  constructor(private readonly options: UnshownMailOptions) {
    const { maxBytes: total, onExhausted } = options
    this.budget = new Budget({ total, perOwner: MAX_ACCOUNT_BYTES, waitMs: WAIT_MS, onExhausted })
  }

  /**
   * Resolves once an account may send a mail of so many bytes, as they are before compression. Rejects with
   * BudgetExhaustedError after ten seconds, and with the signal's reason if it has to wait and that aborts first. Nobody
   * waits while the views of some partition have stopped.
   */
  async take(accountId: AccountId, bytes: number, signal: AbortSignal): Promise<Release> {
    const amount = bytes + MAIL_BYTES
    // Some clients close the connection without reading the last answer: their mail is taken if it need not wait.
    const release = this.budget.tryTake(accountId, amount)
    if (release !== null) return release
    return this.haveViewsStopped() ? () => undefined : this.budget.take(accountId, amount, signal)
  }

  /** Releases once the views show what stands at a position, or after a second. */
  releaseWhenShown({ topic, partition, offset }: Position, release: Release): void {
    const mail = { offset, appendedAtMs: performance.now(), release }
    const waiting = this.appended.get(partition)
    if (waiting !== undefined) {
      waiting.push(mail)
      return
    }
    this.appended.set(partition, [mail])
    void this.follow({ topic, partition, offset })
  }

  /** From then on nothing looks at the views. */
  close(): void {
    this.isClosed = true
  }

  /** Looks at a partition's views for as long as mail waits for them. */
  private async follow({ topic, partition }: Position): Promise<void> {
    for (let waiting = this.appended.get(partition) ?? []; waiting.length > 0;) {
      await pause(LOOK_EVERY_MS, undefined, { ref: false })
      if (this.isClosed) return
      const progress = await this.options.inboxes.progress({ topic, partition }).catch(() => null)
      const position = progress?.position ?? 0
      const nowMs = performance.now()
      if (waiting.every(({ offset }) => offset < position)) this.behind.delete(partition)
      else if (position > (this.behind.get(partition)?.position ?? -1)) {
        this.behind.set(partition, { position, sinceMs: nowMs })
      }
      const oldestMs = nowMs - MAX_UNSHOWN_MS
      const isOver = ({ offset, appendedAtMs }: Appended) => offset < position || appendedAtMs < oldestMs
      for (const { release } of waiting.filter(isOver)) release()
      waiting = waiting.filter((mail) => !isOver(mail))
      if (waiting.length > 0) this.appended.set(partition, waiting)
      else this.appended.delete(partition)
    }
  }

  private haveViewsStopped(): boolean {
    const oldestMs = performance.now() - STOPPED_MS
    return [...this.behind.values()].some(({ sinceMs }) => sinceMs < oldestMs)
  }
}

/** Capacity of an inbox that is reserved for one mail. */
export interface Reservation {
  /** To be called once the mail is on the log: the inbox's row counts it once that shows the offset. */
  fill(offset: number): void
  /** Gives the capacity back, unless it was filled. Harmless to repeat. */
  release(): void
}

/** Mails that an inbox's row need not count yet: under way, or on the log at these offsets. */
interface Uncounted {
  underWay: number
  offsets: Set<number>
}

const MAX_INBOXES = 10_000
/** The views show a mail long before that, or mail is refused because they are behind. */
const MAX_UNCOUNTED_MS = 60_000

/**
 * Counts the mails that this process is accepting, or has on the log before the views show them, so that mails which
 * come close together fill an inbox exactly. Other processes' mails are not known here.
 */
export class InboxCapacity {
  private readonly uncounted = new LRUCache<InboxId, Uncounted>({ max: MAX_INBOXES, ttl: MAX_UNCOUNTED_MS })

  /** Null if the inbox is full. To be called as soon as the row has been read. */
  reserve({ inbox, endOffset }: InboxRow): Reservation | null {
    if (inbox.state !== 'active') return null
    const { id, messageCount, maxMessages } = inbox
    const uncounted = this.uncounted.get(id) ?? { underWay: 0, offsets: new Set() }
    const { offsets } = uncounted
    for (const offset of offsets) {
      if (offset >= endOffset) break
      offsets.delete(offset)
    }
    if (messageCount + uncounted.underWay + offsets.size >= maxMessages) return null
    uncounted.underWay += 1
    this.uncounted.set(id, uncounted)
    let isUnderWay = true
    const release = () => {
      if (isUnderWay) uncounted.underWay -= 1
      isUnderWay = false
    }
    const fill = (offset: number) => {
      release()
      offsets.add(offset)
    }
    return { fill, release }
  }
}
