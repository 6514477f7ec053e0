import { Piscina } from 'piscina'
import type { Sender } from '#libs/mail/authentication/authenticate.js'
import { unverified } from '#libs/mail/authentication/unverified.js'
import type { Authentication } from '#libs/mail/message.js'
import { Budget, BudgetExhaustedError } from '#libs/runtime/fairness/budget.js'
import { addressGroup } from '#libs/runtime/remote-address.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing.js'
import type { VerificationData, VerificationTask } from './sender-verifier-worker.js'

export interface SenderVerifierOptions {
  /** Null for the system's servers. */
  dnsServers: readonly string[] | null
  onError: (error: unknown) => void
  /** Scales the memory for mails that are verified: above 0, at most 1. */
  memoryScale: number
  /** Called when a mail has waited too long for its turn. */
  onExhausted: () => void
  /** The timeout of DNS for one mail. Queries without an answer by then are temporary errors. */
  dnsMs?: number
  /**
   * The timeout of one mail. After its DNS timeout only computing is left, so a longer time means that the thread
   * hangs.
   */
  withinMs?: number
}

const DNS_MS = 5_000
const WITHIN_MS = 10_000
/** Larger mails take up to a second of computing, and have a separate thread. */
const SMALL_BYTES = 1024 * 1024
const MIB = 1024 * 1024
/** How many mails are verified concurrently, and the bytes of their copies. */
const SMALL = { concurrency: 1_024, bytes: 32 * MIB }
const LARGE = { concurrency: 4, bytes: 96 * MIB }
/** The share of one remote address: the DNS of a sender may never answer. */
const PER_ADDRESS = 1 / 4
const IDLE_MS = 30_000
const MEMORY_MIB = 512
/** A mail is verified again if its thread was replaced because of another mail. */
const MAX_ATTEMPTS = 2

/** Verifies mails in worker threads, because a crafted mail could block the event loop for seconds. */
export class SenderVerifier {
  private readonly small: VerifierThread
  private readonly large: VerifierThread

  constructor(private readonly options: SenderVerifierOptions) {
    this.small = new VerifierThread(SMALL, { minThreads: 1 }, options)
    this.large = new VerifierThread(LARGE, { minThreads: 0, idleTimeout: IDLE_MS }, options)
  }

  /** Never rejects. A mail that can't be verified now gets a `temperror` with the reason, and is not refused. */
  async verify(raw: Buffer, { mailFrom, helo, remoteAddress }: Sender): Promise<Authentication> {
    const lane = raw.length <= SMALL_BYTES ? this.small : this.large
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const verified = await lane.run({ raw, sender: { mailFrom, helo, remoteAddress } })
        if (verified !== 'thread-lost') return verified
      }
      return unverified('temperror', 'verification took longer than allowed')
    } catch (error) {
      if (error instanceof BudgetExhaustedError) {
        return unverified('temperror', 'too many mails were verified at once')
      }
      this.options.onError(error)
      return unverified('temperror', 'verification failed')
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.small.close(), this.large.close()])
  }
}

type Pool = Piscina<VerificationTask, Authentication>
type PoolOptions = ConstructorParameters<typeof Piscina>[0]

/**
 * A thread that verifies many mails concurrently. Piscina runs an abortable task alone in its thread, so tasks are not
 * abortable: a thread that does not respond in time is replaced.
 */
class VerifierThread {
  private pool: Pool
  private readonly turns: Budget
  private readonly dnsMs: number
  private readonly withinMs: number

  constructor(
    private readonly size: { concurrency: number; bytes: number },
    private readonly poolOptions: PoolOptions,
    private readonly options: SenderVerifierOptions,
  ) {
    this.dnsMs = options.dnsMs ?? DNS_MS
    this.withinMs = options.withinMs ?? WITHIN_MS
    const { memoryScale, onExhausted } = options
    const total = size.bytes * memoryScale
    this.turns = new Budget({ total, perOwner: total * PER_ADDRESS, waitMs: this.dnsMs, onExhausted })
    this.pool = this.open()
  }

  /**
   * Waits for the turn of the remote address, and verifies a mail. Resolves with `thread-lost` if the thread was
   * replaced meanwhile, because of this mail or another one. Rejects with BudgetExhaustedError.
   */
  async run(task: Omit<VerificationTask, 'withinMs'>): Promise<Authentication | 'thread-lost'> {
    const bytes = Math.max(task.raw.length, this.size.bytes / this.size.concurrency)
    const release = await this.turns.take(addressGroup(task.sender.remoteAddress), bytes)
    const { pool } = this
    try {
      return await beforeDeadline(this.withinMs, pool.run({ ...task, withinMs: this.dnsMs }))
    } catch (error) {
      if (error instanceof DeadlineError) this.replace(pool)
      if (this.pool === pool) throw error
      return 'thread-lost'
    } finally {
      release()
    }
  }

  close(): Promise<void> {
    return this.pool.destroy()
  }

  private replace(pool: Pool): void {
    if (this.pool !== pool) return
    this.pool = this.open()
    pool.destroy().catch(this.options.onError)
  }

  private open(): Pool {
    const workerData: VerificationData = { dnsServers: this.options.dnsServers }
    const pool: Pool = new Piscina({
      ...this.poolOptions,
      concurrentTasksPerWorker: this.size.concurrency,
      filename: import.meta.resolve('#apps/smtp/sender-verifier-worker.js'),
      workerData,
      maxThreads: 1,
      // A thread that waits with Atomics does not process DNS responses.
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    })
    // Without a listener, the loss of an idle thread would crash the process.
    pool.on('error', this.options.onError)
    return pool
  }
}
