import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Counter, Registry } from 'prom-client'
import type { Fault, FaultStage } from '#libs/domain/inbox/fault.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox, Inbox } from '#libs/domain/inbox/inbox.js'
import type { RateLimits, RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { Refusal, REFUSALS } from './replies.js'

/** A command, or a mail, for one recipient. */
export interface Attempt {
  inbox: Inbox
  /** MAIL FROM and RCPT TO. */
  mailFrom: string
  rcptTo: string
}

export interface MailFaultsOptions {
  limits: Pick<RateLimits, 'charge'>
  registry: Registry
  now: () => Date
  onError: (error: unknown) => void
  /** MAX_COUNTS by default. With more, the faults that count do not apply. */
  maxCounts?: { ofAccount: number; ofAll: number }
}

/** Delayed replies of one process, shared among accounts, and the mail that they hold. Further ones are not delayed. */
const MAX_DELAYED = 200
const MAX_DELAYED_BYTES = 32 * 1024 * 1024
/** All delays of one reply together. */
const MAX_DELAY_MS = 60_000
/** A count is kept until its inbox expires, at most for a day. */
const MAX_COUNTED_SECONDS = 24 * 3_600
/** Counts that a process starts for one account, and for all, within a day, since anyone can send. */
const MAX_COUNTS = { ofAccount: 500_000, ofAll: 1_000_000 }
const MAX_ACCOUNTS = 10_000

/** Applies the faults on purpose of inboxes (docs/api.md). Its methods never reject. */
export class MailFaults {
  private readonly delays = new SharedSlots(MAX_DELAYED)
  private delayedBytes = 0
  /** How many counts were started since the first one, by account and for `all`. */
  private readonly startedCounts = new LRUCache<AccountId | 'all', number>({
    max: MAX_ACCOUNTS,
    ttl: MAX_COUNTED_SECONDS * 1_000,
    noUpdateTTL: true,
  })
  private readonly applied: Counter<'stage' | 'action'>

  constructor(private readonly options: MailFaultsOptions) {
    this.applied = new Metrics(options.registry).counter(
      'mayfly_faults_total',
      'Faults on purpose that were applied to mail, by stage and action.',
      ['stage', 'action'],
    )
  }

  /**
   * Delays the reply to a RCPT TO, or to a mail of that many bytes. Resolves with the refusal; null if there is none. If the
   * client disconnects meanwhile, the mail must not be accepted, since its sender does not know of it.
   */
  async refusalAt(
    stage: 'rcpt' | 'data',
    attempts: readonly Attempt[],
    client: { disconnected: AbortSignal | null; bytes: number },
  ): Promise<Refusal | null> {
    const disturbed = attempts.filter(({ inbox }) => hasFaults(inbox, stage))
    if (disturbed.length === 0) return null
    let leftMs = MAX_DELAY_MS
    for (const attempt of disturbed) {
      for await (const fault of this.appliedAt(stage, attempt)) {
        if (fault.action === 'reject') return refusalOf(fault)
        const ms = Math.min(fault.delayMs ?? 0, leftMs)
        leftMs -= ms
        await this.delay(attempt.inbox, ms, client)
      }
    }
    return client.disconnected?.aborted === true ? REFUSALS.clientLeft : null
  }

  /** What happens to an accepted mail. */
  async afterAccept(attempt: Attempt): Promise<'deliver' | 'drop' | 'duplicate'> {
    for await (const { action } of this.appliedAt('after_accept', attempt)) {
      if (action === 'drop' || action === 'duplicate') return action
    }
    return 'deliver'
  }

  private async *appliedAt(stage: FaultStage, attempt: Attempt): AsyncGenerator<Fault> {
    if (!hasFaults(attempt.inbox, stage)) return
    for (const [index, fault] of attempt.inbox.faults.entries()) {
      if (fault.stage !== stage || !(await this.applies(fault, index, attempt))) continue
      this.applied.inc({ stage, action: fault.action })
      yield fault
    }
  }

  private async applies(fault: Fault, index: number, { inbox, mailFrom, rcptTo }: Attempt): Promise<boolean> {
    if (inbox.state !== 'active') return false
    const { firstN, everyN, probability, seed } = fault
    // Setting other faults starts new counts.
    const name = `${inbox.id}:${inbox.faultsRevision}:${index}`
    const count = (suffix = '') => this.count(`${name}${suffix}`, inbox)
    try {
      if (firstN !== null) {
        const attempt = await count(`:${digestOf(mailFrom, rcptTo)}`)
        if (attempt === null || attempt > firstN) return false
      }
      if (everyN === null && probability === null) return true
      const attempt = await count()
      if (attempt === null) return false
      if (everyN !== null && attempt % everyN !== 0) return false
      return probability === null || isDrawn(seed ?? 0, attempt, probability)
    } catch (error) {
      // Without counts, the mail is not disturbed.
      this.options.onError(error)
      return false
    }
  }

  /** The number of the attempt, from 1; null if too many counts were started. */
  private async count(name: string, { accountId, expiresAt }: ActiveInbox): Promise<number | null> {
    const { maxCounts = MAX_COUNTS } = this.options
    const startedBy = (owner: AccountId | 'all') => this.startedCounts.get(owner) ?? 0
    if (startedBy(accountId) >= maxCounts.ofAccount || startedBy('all') >= maxCounts.ofAll) return null
    const leftSeconds = Math.ceil((expiresAt.getTime() - this.options.now().getTime()) / 1_000)
    const windowSeconds = Math.min(Math.max(leftSeconds, 1), MAX_COUNTED_SECONDS)
    const attempts: RatePolicy = { name: 'faults', quota: Number.MAX_SAFE_INTEGER, windowSeconds }
    const { next } = await this.options.limits.charge(name, attempts, 1)
    const attempt = attempts.quota - next.remaining
    if (attempt === 1) {
      for (const owner of [accountId, 'all'] as const) this.startedCounts.set(owner, startedBy(owner) + 1)
    }
    return attempt
  }

  private async delay(
    { accountId }: Inbox,
    ms: number,
    { disconnected, bytes }: { disconnected: AbortSignal | null; bytes: number },
  ): Promise<void> {
    if (this.delayedBytes + bytes > MAX_DELAYED_BYTES) return
    const ending = new AbortController()
    const release = this.delays.take([accountId], () => {
      ending.abort()
      return true
    })
    if (release === null) return
    this.delayedBytes += bytes
    const signal = disconnected === null ? ending.signal : AbortSignal.any([ending.signal, disconnected])
    await pause(ms, undefined, { signal, ref: false }).catch(() => undefined)
    this.delayedBytes -= bytes
    release()
  }
}

/** Whether an inbox has faults at a stage. */
function hasFaults(inbox: Inbox, stage: FaultStage): inbox is ActiveInbox {
  return inbox.state === 'active' && inbox.faults.some((fault) => fault.stage === stage)
}

function digestOf(mailFrom: string, rcptTo: string): string {
  return hash('sha256', `${mailFrom} ${rcptTo}`.toLowerCase(), 'base64url').slice(0, 16)
}

function refusalOf({ code, enhancedCode, text }: Fault): Refusal {
  const status = code ?? 451
  const enhanced = enhancedCode ?? `${String(status).charAt(0)}.0.0`
  return new Refusal('fault-on-purpose', status, `${enhanced} ${text ?? 'a fault on purpose'}`)
}

/** Whether the nth attempt of a seed, counted from 1, is drawn: the same for the same numbers, on every machine. */
function isDrawn(seed: number, attempt: number, probability: number): boolean {
  return hash('sha256', `${seed} ${attempt}`, 'buffer').readUIntBE(0, 6) / 2 ** 48 < probability
}
