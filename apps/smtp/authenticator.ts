import { Piscina } from 'piscina'
import type { Sender } from '#libs/mail-auth/authenticate.js'
import { unjudged } from '#libs/mail-auth/unjudged.js'
import type { Authentication } from '#libs/mail/message.js'
import { beforeDeadline, DeadlineError } from '#libs/timing/deadline.js'
import type { AuthenticateData, AuthenticateTask } from './authenticate-worker.js'
import { MemoryBudget } from './memory-budget.js'

export interface AuthenticatorOptions {
  /** Null for the system's. */
  dnsServers: readonly string[] | null
  onError: (error: unknown) => void
  /** Of one mail, for DNS: past that what has not answered is a temporary error. */
  dnsMs?: number
  /** Of one mail, in all: past its time for DNS it has only computing left, and its thread hangs. */
  withinMs?: number
}

const DNS_MS = 5_000
const WITHIN_MS = 10_000
/** Larger ones take up to a second of computing, and go through a thread of their own. */
const SMALL_BYTES = 1024 * 1024
const SMALL_AT_ONCE = 1_000
const LARGE_AT_ONCE = 4
const IDLE_MS = 30_000
/** Copies of mails on their way to a thread. */
const COPIED_BYTES = 128 * 1024 * 1024
const MEMORY_MIB = 512
/** A mail whose thread another one ended is judged again. */
const TRIES = 2

/** Judges mails in threads beside the event loop, which a mail made for it could hold for seconds. */
export class Authenticator {
  private readonly small: Lane
  private readonly large: Lane
  private readonly copied = new MemoryBudget(COPIED_BYTES)

  constructor(private readonly options: AuthenticatorOptions) {
    this.small = new Lane({ minThreads: 1, concurrentTasksPerWorker: SMALL_AT_ONCE }, options)
    const forLarge = { minThreads: 0, idleTimeout: IDLE_MS, concurrentTasksPerWorker: LARGE_AT_ONCE }
    this.large = new Lane(forLarge, options)
  }

  /** Never rejects: what can't be judged now is a `temperror`, which says why, and no reason to refuse a mail. */
  async judge(raw: Buffer, { mailFrom, helo, remoteAddress }: Sender): Promise<Authentication> {
    if (!this.copied.tryTake(raw.length)) return unjudged('temperror', 'too many mails were judged at once')
    const lane = raw.length <= SMALL_BYTES ? this.small : this.large
    try {
      for (let tried = 0; tried < TRIES; tried += 1) {
        const judged = await lane.run({ raw, sender: { mailFrom, helo, remoteAddress } })
        if (judged !== 'thread-lost') return judged
      }
      return unjudged('temperror', 'judging took longer than allowed')
    } catch (error) {
      this.options.onError(error)
      return unjudged('temperror', 'judging failed')
    } finally {
      this.copied.giveBack(raw.length)
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
  private readonly dnsMs: number
  private readonly withinMs: number

  constructor(
    private readonly poolOptions: PoolOptions,
    private readonly options: AuthenticatorOptions,
  ) {
    this.dnsMs = options.dnsMs ?? DNS_MS
    this.withinMs = options.withinMs ?? WITHIN_MS
    this.pool = this.open()
  }

  /** `thread-lost` where the thread had to be ended under it, by this mail or by another one. */
  async run(task: Omit<AuthenticateTask, 'withinMs'>): Promise<Authentication | 'thread-lost'> {
    const { pool } = this
    try {
      return await beforeDeadline(this.withinMs, pool.run({ ...task, withinMs: this.dnsMs }))
    } catch (error) {
      if (error instanceof DeadlineError) this.replace(pool)
      if (this.pool === pool) throw error
      return 'thread-lost'
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
      filename: new URL('./authenticate-worker.js', import.meta.url).href,
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
