import { LRUCache } from 'lru-cache'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { RefusalReason } from './replies.js'

const MAX_REFUSALS = 2_000

/** What a session may do without delivering a mail. An accepted one begins the counts anew. */
export class SessionBounds {
  private errors = 0
  private refusals = 0
  private idleCommands = 0
  private progressAtMs = performance.now()
  private begunAtMs: number | null = null

  constructor(private readonly settings: Settings) {}

  /** Whether a command that adds no recipient may still come. */
  mayCommand(): boolean {
    this.idleCommands += 1
    return this.idleCommands <= this.settings.smtpMaxIdleCommands
  }

  /** Whether the session may go on behind a refusal. */
  mayGoOn(reason: RefusalReason): boolean {
    if (reason === 'protocol-error' || reason === 'invalid-credentials') this.errors += 1
    this.refusals += 1
    return this.errors < this.settings.smtpMaxErrors && this.refusals < MAX_REFUSALS
  }

  /** Only the first mail since the last accepted one counts. */
  mailBegan(): void {
    this.begunAtMs ??= performance.now()
  }

  delivered(): void {
    this.errors = 0
    this.refusals = 0
    this.idleCommands = 0
    this.progressAtMs = performance.now()
    this.begunAtMs = null
  }

  /** Whether the session has gone too long without a mail to stay open while few connections are left. */
  isOverCrowdedTimeout(nowMs: number): boolean {
    return nowMs - (this.begunAtMs ?? this.progressAtMs) > this.settings.smtpCrowdedTimeoutMs
  }

  hasStalled(nowMs: number): boolean {
    return nowMs - this.progressAtMs > this.settings.smtpSessionTimeoutMs
  }
}

const WINDOW_MS = 600_000
/** Remote addresses that are remembered; one that is forgotten begins anew. */
const MAX_REMEMBERED = 20_000

/**
 * Makes guessing recipients slow. Unknown ones count, and each known one makes up for one of them: mail of which
 * the larger part has a recipient is never held back, whatever its amount.
 */
export class UnknownRecipients {
  private readonly byAddress = new LRUCache<string, { unknown: number }>({
    max: MAX_REMEMBERED,
    ttl: WINDOW_MS,
  })

  constructor(readonly settings: Settings) {}

  /** For a session; the group is what counts as its remote address. */
  session(group: string): SessionGuesses {
    return new SessionGuesses(group, this)
  }

  /** Returns whether the address has used up its allowance. */
  count(group: string, change: number): boolean {
    const count = this.byAddress.get(group) ?? { unknown: 0 }
    count.unknown = Math.max(count.unknown + change, 0)
    if (change > 0 && !this.byAddress.has(group)) this.byAddress.set(group, count)
    return count.unknown > this.settings.smtpMaxUnknownRecipientsPerAddress
  }
}

export class SessionGuesses {
  private unknown = 0

  constructor(
    private readonly group: string,
    private readonly all: UnknownRecipients,
  ) {}

  known(): void {
    this.unknown = Math.max(this.unknown - 1, 0)
    this.all.count(this.group, -1)
  }

  /**
   * How many milliseconds to hold the answer back; null if the session is to be closed. Answers come at once for the
   * first tenth of the allowance, then later and later, up to the longest delay at half of it.
   */
  guessed(): number | null {
    const { smtpMaxUnknownRecipients: max, smtpUnknownRecipientDelayMs: maxDelayMs } = this.all.settings
    const isAddressOver = this.all.count(this.group, 1)
    this.unknown += 1
    // An address without allowance has the last tenth of a session's.
    if (this.unknown > (isAddressOver ? max / 10 : max)) return null
    if (isAddressOver) return maxDelayMs
    const heldBack = Math.max(this.unknown - max / 10, 0) / (max * 0.4)
    return Math.round(maxDelayMs * Math.min(heldBack, 1))
  }
}
