import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Counter, type Registry } from 'prom-client'
import type { Fault, FaultStage } from '#libs/domain/inbox/fault.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { RateLimits, RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import { SharedSlots } from '#libs/runtime/fair-share.js'
import { Refusal } from './replies.js'

/** A command, or a mail, for one recipient. */
export interface Attempt {
  inbox: Inbox
  /** MAIL FROM and RCPT TO. */
  mailFrom: string
  rcptTo: string
}

interface MailFaultsOptions {
  limits: Pick<RateLimits, 'charge'>
  registry: Registry
  now: () => Date
  onError: (error: unknown) => void
}

/** Delayed replies of one process, shared among accounts. Further ones are not delayed. */
const MAX_DELAYED = 1_000
/** Senders and recipients are counted in this number of groups for each fault, since anyone can send. */
const GROUPS = 16_384
/** A count is kept until its inbox expires, at most for two weeks. */
const MAX_COUNTED_SECONDS = 14 * 24 * 3_600

/** Applies the faults on purpose of inboxes (docs/smtp.md). Its methods never reject. */
export class MailFaults {
  private readonly delays = new SharedSlots(MAX_DELAYED)
  private readonly applied: Counter<'stage' | 'action'>

  constructor(private readonly options: MailFaultsOptions) {
    this.applied = new Counter({
      name: 'mayfly_faults_total',
      help: 'Faults on purpose that were applied to mail, by stage and action.',
      labelNames: ['stage', 'action'],
      registers: [options.registry],
    })
  }

  /** Delays the reply to a RCPT TO, or to a mail. Resolves with the refusal; null if there is none. */
  async refusalAt(
    stage: 'rcpt' | 'data',
    attempts: readonly Attempt[],
    disconnected: AbortSignal | null,
  ): Promise<Refusal | null> {
    for (const attempt of attempts) {
      for await (const fault of this.appliedAt(stage, attempt)) {
        if (fault.action === 'reject') return refusalOf(fault)
        await this.delay(attempt.inbox, fault.delayMs ?? 0, disconnected)
      }
    }
    return null
  }

  /** What happens to an accepted mail. */
  async outcomeOf(attempt: Attempt): Promise<'deliver' | 'drop' | 'duplicate'> {
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
    // Setting faults again starts new counts.
    const name = `${inbox.id}:${inbox.faultsRevision}:${index}`
    const count = (suffix = '') => this.count(`${name}${suffix}`, inbox.expiresAt)
    try {
      if (firstN !== null && (await count(`:${groupOf(mailFrom, rcptTo)}`)) > firstN) return false
      if (everyN === null && probability === null) return true
      const attempt = await count()
      if (everyN !== null && attempt % everyN !== 0) return false
      return probability === null || isDrawn(seed ?? 0, attempt, probability)
    } catch (error) {
      // Without counts, the mail is not disturbed.
      this.options.onError(error)
      return false
    }
  }

  /** The number of the attempt, from 1. */
  private async count(name: string, until: Date): Promise<number> {
    const leftSeconds = Math.ceil((until.getTime() - this.options.now().getTime()) / 1_000)
    const windowSeconds = Math.min(Math.max(leftSeconds, 1), MAX_COUNTED_SECONDS)
    const attempts: RatePolicy = { name: 'faults', quota: Number.MAX_SAFE_INTEGER, windowSeconds }
    const { next } = await this.options.limits.charge(name, attempts, 1)
    return attempts.quota - next.remaining
  }

  private async delay({ accountId }: Inbox, ms: number, disconnected: AbortSignal | null): Promise<void> {
    const ending = new AbortController()
    const leave = this.delays.take([accountId], () => {
      ending.abort()
      return true
    })
    if (leave === null) return
    const signal = disconnected === null ? ending.signal : AbortSignal.any([ending.signal, disconnected])
    await pause(ms, undefined, { signal, ref: false }).catch(() => undefined)
    leave()
  }
}

/** Whether an inbox has faults at a stage. */
export function hasFaults(inbox: Inbox, stage: FaultStage): inbox is Extract<Inbox, { state: 'active' }> {
  return inbox.state === 'active' && inbox.faults.some((fault) => fault.stage === stage)
}

function groupOf(mailFrom: string, rcptTo: string): number {
  const digest = hash('sha256', `${mailFrom} ${rcptTo}`.toLowerCase(), 'buffer')
  return digest.readUInt32BE() % GROUPS
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
