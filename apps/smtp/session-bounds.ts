import type { RefusalReason } from './replies.js'

export interface SessionBoundsOptions {
  /** Faulty commands, and commands that deliver nothing, since the session's start or its last accepted mail. */
  maxErrors: number
  maxIdleCommands: number
  /** The same in time. */
  sessionTimeoutMs: number
  /** In place of the one above while few connections are left. A mail that has begun extends it, once. */
  crowdedTimeoutMs: number
}

const MAX_REFUSALS = 2_000

/** What a session may do without delivering a mail. An accepted one begins the counts anew. */
export class SessionBounds {
  private errors = 0
  private refusals = 0
  private idleCommands = 0
  private progressAtMs = performance.now()
  private begunAtMs: number | null = null

  constructor(private readonly options: SessionBoundsOptions) {}

  /** Whether a command that adds no recipient may still come. */
  mayCommand(): boolean {
    this.idleCommands += 1
    return this.idleCommands <= this.options.maxIdleCommands
  }

  /** Whether the session may go on behind a refusal. */
  mayGoOn(reason: RefusalReason): boolean {
    if (reason === 'protocol-error' || reason === 'invalid-credentials') this.errors += 1
    this.refusals += 1
    return this.errors < this.options.maxErrors && this.refusals < MAX_REFUSALS
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
    return nowMs - (this.begunAtMs ?? this.progressAtMs) > this.options.crowdedTimeoutMs
  }

  hasStalled(nowMs: number): boolean {
    return nowMs - this.progressAtMs > this.options.sessionTimeoutMs
  }
}
