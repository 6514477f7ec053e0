import type { OnApplicationShutdown } from '@nestjs/common'
import { Piscina } from 'piscina'
import { Budget } from '#libs/runtime/fair-share.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { Problem } from '../http/problems.js'
import type { AttachmentContent, AttachmentRequest } from './attachment-worker.js'

const TIMEOUT_MS = 10_000
/** Enough for two that take the longest. */
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
  /** Called with the error of a thread that ended with nobody waiting for it. */
  onThreadLost: (error: unknown) => void
}

/**
 * Reads attachments in threads, which are there only while they are used: a large mail must not hold up requests. Each
 * account has one at a time.
 */
export class AttachmentPool implements OnApplicationShutdown {
  private readonly pool: Piscina<AttachmentRequest, AttachmentContent | null>
  /** Jobs wait here, not in the pool, so that a job's time begins when a thread takes it. */
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
    // A thread may run out of memory while it is being stopped. Without a listener, that would end the process.
    this.pool.on('error', onThreadLost)
  }

  /**
   * Null if the mail has no attachment of that index. Throws internal-error if reading takes too long,
   * BudgetExhaustedError if the account's turn does not come in time, and the signal's reason if that aborts.
   */
  async read(
    { accountId, source, index }: WantedAttachment,
    clientGone: AbortSignal,
  ): Promise<AttachmentContent | null> {
    const release = await this.turns.take(accountId, 1, clientGone)
    try {
      return await this.cut(await source(), index, clientGone)
    } finally {
      release()
    }
  }

  private async cut(raw: Buffer, index: number, clientGone: AbortSignal): Promise<AttachmentContent | null> {
    const late = AbortSignal.timeout(TIMEOUT_MS)
    try {
      return await this.pool.run({ raw, index }, { signal: AbortSignal.any([late, clientGone]) })
    } catch (cause) {
      clientGone.throwIfAborted()
      if (!late.aborted) throw cause
      throw new Problem('internal-error', { detail: 'Reading the attachment took longer than allowed.' })
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.destroy()
  }
}
