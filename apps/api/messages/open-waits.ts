import type { Registry } from 'prom-client'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { Doorbell } from '#libs/ports/signals/signals.js'
import type { Principal } from '../access/principal.js'
import { unavailable, type Problem, shuttingDown } from '../http/problems.js'

/** Why a wait ended early. */
type WaitEnd = 'client-gone' | 'crowded-out' | 'shutting-down'

/** The wait of one request. */
export class OpenWait {
  /** Rung when there may be new messages, and when the wait ends. */
  readonly bell = new Doorbell()
  /** Why it ended; null while it is open. */
  end: WaitEnd | null = null
  private readonly ending = new AbortController()

  /** Aborts when the wait ends. */
  get signal(): AbortSignal {
    return this.ending.signal
  }

  endWith(end: WaitEnd): void {
    this.end ??= end
    this.ending.abort()
    this.bell.ring()
  }

  /** Settles as `work` does, except that it resolves with the fallback if the wait ended `work`. */
  async orIfEnded<Result>(work: Promise<Result>, fallback: Result): Promise<Result> {
    try {
      return await work
    } catch (error) {
      if (this.end === null || error !== this.signal.reason) throw error
      return fallback
    }
  }
}

/**
 * The open waits of this process. Their number is limited, and shared among accounts and keys. They end with the
 * process.
 */
export class OpenWaits {
  private readonly waits = new Set<OpenWait>()
  private readonly slots: SharedSlots
  private isClosed = false

  constructor(max: number, registry: Registry) {
    this.slots = new SharedSlots(max)
    new Metrics(registry).gauge(
      'mayfly_open_waits',
      'Requests that wait for a message.',
      () => this.waits.size,
    )
  }

  /**
   * Runs a wait, which ends early if `clientGone` aborts, the process ends, or a key with fewer waits needs the slot.
   * Throws too-many-waits, and shutting-down.
   */
  async run<Result>(
    { accountId, countedBy }: Principal,
    clientGone: AbortSignal,
    work: (wait: OpenWait) => Promise<Result>,
  ): Promise<Result> {
    if (this.isClosed) throw shuttingDown(SEND_AGAIN)
    const wait = new OpenWait()
    const release = this.slots.take([accountId, countedBy], () => {
      wait.endWith('crowded-out')
      return true
    })
    if (release === null) throw tooManyWaits()
    const onGone = () => wait.endWith('client-gone')
    this.waits.add(wait)
    clientGone.addEventListener('abort', onGone)
    if (clientGone.aborted) onGone()
    try {
      return await work(wait)
    } finally {
      clientGone.removeEventListener('abort', onGone)
      this.waits.delete(wait)
      release()
    }
  }

  /** Ends every wait, and accepts no more. */
  close(): void {
    this.isClosed = true
    for (const wait of this.waits) wait.endWith('shutting-down')
  }
}

/** The detail of the 503 that ends a wait. */
export const SEND_AGAIN = 'This instance is shutting down. Send the wait again to reach another one.'

export function tooManyWaits(): Problem {
  return unavailable(
    'too-many-waits',
    'The limit of open waits is reached, and this key has its share of them.',
  )
}
