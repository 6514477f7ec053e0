import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { Partition, Position } from '#libs/ports/event-log/event-log.js'
import { progressChannel } from '#libs/ports/read-model/consistent-views.js'
import type { ViewProgress } from '#libs/ports/read-model/view-store.js'
import { Doorbell, type Signals } from '#libs/ports/signals/signals.js'
import { Budget, type Release } from '#libs/runtime/fairness/budget.js'

export interface InFlightMailOptions {
  inboxes: ViewProgress
  signals: Pick<Signals, 'subscribe'>
  /** The budget of all accounts. */
  maxBytes: number
  /** Called when a mail has waited too long. */
  onExhausted: () => void
}

/**
 * The budget of one account. The views of a partition are updated record by record, so mail in flight delays the events
 * of other accounts: 18 small mails by about 20 ms. With more mail in flight the views are updated in larger steps, which
 * costs less time per mail.
 */
const MAX_ACCOUNT_BYTES = { alone: 4 * 1024 * 1024, besideOthers: 1.25 * 1024 * 1024 }
/**
 * Added to the bytes of each mail for the time to parse it: eight times its bytes, within these bounds. A mail of 40 KB of
 * HTML takes about eight times as long as one of 5 KB; larger mails are mostly attachments, which take little.
 */
const ADDED_BYTES = { factor: 8, min: 64 * 1024, max: 512 * 1024 }
const WAIT_MS = 10_000
/** A mail counts for at most this long, even if the views don't show it yet. */
const MAX_IN_FLIGHT_MS = 1_000
/** If the views have not advanced for this long, they have stopped, and mail does not wait for them. */
const STOPPED_MS = 5_000

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
  private readonly bells = new Set<Doorbell>()
  private isClosed = false

  constructor(private readonly options: InFlightMailOptions) {
    const { maxBytes: total, onExhausted } = options
    const { alone: perOwnerAlone, besideOthers: perOwner } = MAX_ACCOUNT_BYTES
    this.budget = new Budget({ total, perOwner, perOwnerAlone, waitMs: WAIT_MS, onExhausted })
  }

  /**
   * Resolves once an account may send a mail of that many uncompressed bytes. Resolves with null after ten seconds, or
   * if the budget is exhausted and the signal aborts. Does not wait while the views of any partition have stopped.
   */
  async take(accountId: AccountId, bytes: number, signal: AbortSignal): Promise<Release | null> {
    const { factor, min, max } = ADDED_BYTES
    const amount = bytes + Math.min(Math.max(factor * bytes, min), max)
    // Ignores the signal at first, because some clients disconnect without reading the last reply.
    const release = this.budget.tryTake(accountId, amount)
    if (release !== null) return release
    if (this.haveViewsStopped() && !signal.aborted) return () => undefined
    return this.budget.takeOrNull(accountId, amount, signal)
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
    void this.follow({ topic, partition })
  }

  /** Stops waiting for the views. */
  close(): void {
    this.isClosed = true
    for (const bell of this.bells) bell.ring()
  }

  /** Releases mail of a partition whenever its views have advanced, while mail waits for them. */
  private async follow({ topic, partition }: Partition): Promise<void> {
    const bell = new Doorbell()
    this.bells.add(bell)
    const channel = progressChannel({ topic, partition })
    const unsubscribe = await this.options.signals
      .subscribe(channel, () => bell.ring())
      .catch(() => () => undefined)
    let waiting = this.appended.get(partition) ?? []
    // The views may have advanced before the subscription, so each turn starts with a check.
    while (waiting.length > 0 && !this.isClosed) {
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
      const [oldest] = waiting
      if (oldest !== undefined) {
        // A signal may be lost, so this takes no longer than the oldest mail counts.
        await bell.wait(oldest.appendedAtMs + MAX_IN_FLIGHT_MS + 1 - nowMs)
      }
    }
    unsubscribe()
    this.bells.delete(bell)
  }

  private haveViewsStopped(): boolean {
    const oldestMs = performance.now() - STOPPED_MS
    return [...this.lagging.values()].some(({ sinceMs }) => sinceMs < oldestMs)
  }
}
