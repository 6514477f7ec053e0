import { LRUCache } from 'lru-cache'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { RefusalReason } from './replies.js'

const MAX_REFUSALS = 2_000

/** Limits on what a session may do without delivering a mail. An accepted mail or a fault on purpose resets the counts. */
export class SessionBounds {
  private errors = 0
  private refusals = 0
  private idleCommands = 0
  private progressAtMs = performance.now()
  private mailStartedAtMs: number | null = null

  /** Unknown recipients, minus the known ones. */
  private unknown = 0

  constructor(
    private readonly settings: Settings,
    /** The network that counts as the session's remote address, and what its sessions have counted. */
    private readonly group: string,
    private readonly ofAddresses: UnknownRecipients,
  ) {}

  /** Counts a command that adds no recipient. Returns whether it is allowed. */
  countCommand(): boolean {
    this.idleCommands += 1
    return this.idleCommands <= this.settings.smtpMaxIdleCommands
  }

  /** Counts a refusal. Returns whether the session may continue. */
  countRefusal(reason: RefusalReason): boolean {
    // The inbox's owner asked for it, so it counts like a delivery: a session may meet any number of greylisted inboxes.
    if (reason === 'fault-on-purpose') {
      this.delivered()
      return true
    }
    if (reason === 'protocol-error' || reason === 'invalid-credentials') this.errors += 1
    this.refusals += 1
    return this.errors < this.settings.smtpMaxErrors && this.refusals < MAX_REFUSALS
  }

  /** Only the first mail since the last accepted one counts. */
  mailStarted(): void {
    this.mailStartedAtMs ??= performance.now()
  }

  delivered(): void {
    this.errors = 0
    this.refusals = 0
    this.idleCommands = 0
    this.progressAtMs = performance.now()
    this.mailStartedAtMs = null
  }

  /** Whether the session has delivered no mail for too long to stay open while few connection slots are left. */
  isOverCrowdedTimeout(nowMs: number): boolean {
    return nowMs - (this.mailStartedAtMs ?? this.progressAtMs) > this.settings.smtpCrowdedTimeoutMs
  }

  hasStalled(nowMs: number): boolean {
    return nowMs - this.progressAtMs > this.settings.smtpSessionTimeoutMs
  }

  countKnown(): void {
    this.unknown = Math.max(this.unknown - 1, 0)
    this.ofAddresses.count(this.group, -1)
  }

  /**
   * Counts an unknown recipient. Returns the milliseconds by which to delay the reply, or null to close the session.
   * There is no delay for the first tenth of the allowance; then it grows up to the maximum at half of the allowance.
   */
  countUnknown(): number | null {
    const { smtpMaxUnknownRecipients: max, smtpUnknownRecipientDelayMs: maxDelayMs } = this.settings
    const isAddressOver =
      this.ofAddresses.count(this.group, 1) > this.settings.smtpMaxUnknownRecipientsPerAddress
    this.unknown += 1
    // If the address has exceeded its allowance, the session gets a tenth of its own.
    if (this.unknown > (isAddressOver ? max / 10 : max)) return null
    if (isAddressOver) return maxDelayMs
    const fraction = Math.max(this.unknown - max / 10, 0) / (max * 0.4)
    return Math.round(maxDelayMs * Math.min(fraction, 1))
  }
}

const WINDOW_MS = 600_000
/** How many remote addresses are remembered. */
const MAX_REMEMBERED = 20_000

/**
 * Counts the recipients that clients guess, by remote address: each unknown recipient counts one, and each known one
 * takes one off, so a client whose recipients mostly exist is never delayed.
 */
export class UnknownRecipients {
  private readonly byAddress = new LRUCache<string, { unknown: number }>({
    max: MAX_REMEMBERED,
    ttl: WINDOW_MS,
  })

  /** Changes the count of an address, and returns it. */
  count(group: string, change: number): number {
    const count = this.byAddress.get(group) ?? { unknown: 0 }
    count.unknown = Math.max(count.unknown + change, 0)
    if (change > 0 && !this.byAddress.has(group)) this.byAddress.set(group, count)
    return count.unknown
  }
}
