import { Piscina } from 'piscina'
import type { Sender } from '#libs/mail/authentication/authenticate.js'
import { unverified } from '#libs/mail/authentication/unverified.js'
import type { Authentication } from '#libs/mail/message.js'
import { Budget, BudgetExhaustedError } from '#libs/runtime/fair-share.js'
import { addressGroup } from '#libs/runtime/remote-address.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'
import type { AuthenticateData, AuthenticateTask } from './authenticate-worker.js'

export interface AuthenticatorOptions {
  /** Null for the system's. */
  dnsServers: readonly string[] | null
  onError: (error: unknown) => void
  /** Of the full size of what is memory: above 0, at most 1. */
  memoryScale: number
  /** Called when a mail has waited too long for its turn. */
  onExhausted: () => void
  /** Of one mail, for DNS: past that what has not answered is a temporary error. */
  dnsMs?: number
  /** Of one mail, in all: past its time for DNS it has only computing left, and its thread hangs. */
  withinMs?: number
}

const DNS_MS = 5_000
const WITHIN_MS = 10_000
/** Larger ones take up to a second of computing, and go through a thread of their own. */
const SMALL_BYTES = 1024 * 1024
const MIB = 1024 * 1024
/** Mails verified at once, and bytes of their copies. */
const SMALL = { atOnce: 1_024, bytes: 32 * MIB }
const LARGE = { atOnce: 4, bytes: 96 * MIB }
/** Of those at once, the part of one remote address: who sends may have DNS that never answers. */
const PER_ADDRESS = 1 / 4
const IDLE_MS = 30_000
const MEMORY_MIB = 512
/** A mail whose thread another one ended is verified again. */
const TRIES = 2

/** Verifies mails in threads beside the event loop, which a mail made for it could hold for seconds. */
export class Authenticator {
  private readonly small: Lane
  private readonly large: Lane

  constructor(private readonly options: AuthenticatorOptions) {
    this.small = new Lane(SMALL, { minThreads: 1 }, options)
    this.large = new Lane(LARGE, { minThreads: 0, idleTimeout: IDLE_MS }, options)
  }

  /** Never rejects: what can't be verified now is a `temperror`, which says why, and no reason to refuse a mail. */
  async verify(raw: Buffer, { mailFrom, helo, remoteAddress }: Sender): Promise<Authentication> {
    const lane = raw.length <= SMALL_BYTES ? this.small : this.large
    try {
      for (let tried = 0; tried < TRIES; tried += 1) {
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

type Pool = Piscina<AuthenticateTask, Authentication>
type PoolOptions = ConstructorParameters<typeof Piscina>[0]

/**
 * A thread for many mails at once. Piscina gives a task that can be aborted a thread of its own, so it is not asked to
 * abort: a thread that does not answer in time is replaced.
 */
class Lane {
  private pool: Pool
  private readonly turns: Budget
  private readonly dnsMs: number
  private readonly withinMs: number

  constructor(
    private readonly size: { atOnce: number; bytes: number },
    private readonly poolOptions: PoolOptions,
    private readonly options: AuthenticatorOptions,
  ) {
    this.dnsMs = options.dnsMs ?? DNS_MS
    this.withinMs = options.withinMs ?? WITHIN_MS
    const { memoryScale, onExhausted } = options
    const total = size.bytes * memoryScale
    this.turns = new Budget({ total, perOwner: total * PER_ADDRESS, waitMs: this.dnsMs, onExhausted })
    this.pool = this.open()
  }

  /**
   * Waits for the turn of the remote address; `thread-lost` if the thread had to be ended under it, by this mail or by
   * another one. Throws BudgetExhaustedError.
   */
  async run(task: Omit<AuthenticateTask, 'withinMs'>): Promise<Authentication | 'thread-lost'> {
    const bytes = Math.max(task.raw.length, this.size.bytes / this.size.atOnce)
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
    const workerData: AuthenticateData = { dnsServers: this.options.dnsServers }
    const pool: Pool = new Piscina({
      ...this.poolOptions,
      concurrentTasksPerWorker: this.size.atOnce,
      filename: import.meta.resolve('#apps/smtp/authenticate-worker.js'),
      workerData,
      maxThreads: 1,
      // An idle thread that waits by Atomics would hear nothing of DNS.
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    })
    // A thread that ends while nobody waits for it: unheard, it would end the process.
    pool.on('error', this.options.onError)
    return pool
  }
}
