import type { OnApplicationShutdown } from '@nestjs/common'
import { Piscina } from 'piscina'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { Budget } from '#libs/runtime/fair-share.js'
import { Problem } from '../http/problems.js'
import type { AttachmentContent, AttachmentRequest } from './attachment-worker.js'

const TIMEOUT_MS = 10_000
/** Enough for two attachments that take the maximum time. */
const WAIT_MS = 2 * TIMEOUT_MS
const IDLE_MS = 10_000

export interface WantedAttachment {
  accountId: AccountId
  /** Reads the mail, once it is the account's turn. */
  source: () => Promise<Buffer>
  index: number
}

export interface AttachmentPoolOptions {
  threads: number
  /** The largest heap of a thread. */
  heapMib: number
  /** Called when an account has waited too long for its turn. */
  onExhausted: () => void
  /** Called with the error of a thread that failed outside a job. */
  onThreadLost: (error: unknown) => void
}

/**
 * Reads attachments in threads, since a large mail must not delay requests. Idle threads are stopped. Each account
 * reads one attachment at a time.
 */
export class AttachmentPool implements OnApplicationShutdown {
  private readonly pool: Piscina<AttachmentRequest, AttachmentContent | null>
  /** Jobs wait here and not in the pool, so that the time of a job starts when a thread runs it. */
  private readonly turns: Budget

  constructor({ threads, heapMib, onExhausted, onThreadLost }: AttachmentPoolOptions) {
    this.turns = new Budget({ total: threads, perOwner: 1, waitMs: WAIT_MS, onExhausted })
    this.pool = new Piscina({
      filename: import.meta.resolve('#apps/api/messages/attachment-worker.js'),
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: IDLE_MS,
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
    })
    // A thread may run out of memory while it is stopped. Without a listener, the error would end the process.
    this.pool.on('error', onThreadLost)
  }

  /**
   * Null if the mail has no attachment with that index. Throws internal-error if reading takes too long,
   * BudgetExhaustedError if the account waits too long for its turn, and the signal's reason if it aborts.
   */
  async read(
    { accountId, source, index }: WantedAttachment,
    clientGone: AbortSignal,
  ): Promise<AttachmentContent | null> {
    const release = await this.turns.take(accountId, 1, clientGone)
    try {
      return await this.readInThread(await source(), index, clientGone)
    } finally {
      release()
    }
  }

  private async readInThread(
    raw: Buffer,
    index: number,
    clientGone: AbortSignal,
  ): Promise<AttachmentContent | null> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    try {
      return await this.pool.run({ raw, index }, { signal: AbortSignal.any([timeout, clientGone]) })
    } catch (cause) {
      clientGone.throwIfAborted()
      if (!timeout.aborted) throw cause
      throw new Problem('internal-error', { detail: 'Reading the attachment took longer than allowed.' })
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.destroy()
  }
}
