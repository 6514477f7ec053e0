import type { OnApplicationShutdown } from '@nestjs/common'
import { Piscina } from 'piscina'
import { isOutOfMemory } from '#libs/runtime/errors.js'
import { Budget } from '#libs/runtime/fairness/budget.js'
import type { AttachmentContent, AttachmentRequest, MailToShow, ShownMail } from './content-worker.js'
import type { ExtractResult, ExtractTask } from './extract-worker.js'

const TIMEOUT_MS = 10_000
/** Enough for two jobs that take the maximum time. */
const WAIT_MS = 2 * TIMEOUT_MS
const IDLE_MS = 10_000

/** The jobs of a thread, by their names in content-worker.ts and extract-worker.ts. */
interface Jobs {
  extract: { task: ExtractTask; result: ExtractResult }
  /** Null if the mail has no attachment with that index. */
  openAttachment: { task: AttachmentRequest; result: AttachmentContent | null }
  /** Null if the HTML is too complex. */
  makeDocument: { task: MailToShow; result: ShownMail | null }
  /** Null if the HTML is too complex. */
  checkHtml: { task: string; result: Uint8Array | null }
}

export interface ContentPoolOptions {
  threads: number
  /** The largest heap of a thread. */
  heapMib: number
  /** Called when an account has waited too long for its turn. */
  onExhausted: () => void
  /** Called with the error of a thread that failed outside a job. */
  onThreadLost: (error: unknown) => void
}

const CONTENT_WORKER = import.meta.resolve('#apps/api/messages/content-worker.js')
const EXTRACT_WORKER = import.meta.resolve('#apps/api/messages/extract-worker.js')
const WORKERS: Readonly<Record<keyof Jobs, { filename: string; timeoutMs: number }>> = {
  openAttachment: { filename: CONTENT_WORKER, timeoutMs: TIMEOUT_MS },
  makeDocument: { filename: CONTENT_WORKER, timeoutMs: TIMEOUT_MS },
  checkHtml: { filename: CONTENT_WORKER, timeoutMs: TIMEOUT_MS },
  extract: { filename: EXTRACT_WORKER, timeoutMs: TIMEOUT_MS / 2 },
}

/**
 * Reads attachments, makes documents of HTML, checks HTML and finds expressions in threads, since a large mail must not delay
 * requests. Idle threads are stopped. Each owner has one at a time.
 */
export class ContentPool implements OnApplicationShutdown {
  private readonly pool: Piscina
  /**
   * Jobs wait here and not in the pool, so that the time of a job starts when a thread runs it. Callers wait here while they
   * have their account's turn to read mail, so a job that has its turn here never waits for that.
   */
  private readonly turns: Budget

  constructor({ threads, heapMib, onExhausted, onThreadLost }: ContentPoolOptions) {
    this.turns = new Budget({ total: threads, perOwner: 1, waitMs: WAIT_MS, onExhausted })
    this.pool = new Piscina({
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: IDLE_MS,
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
    })
    // A thread may run out of memory while it is stopped. Without a listener, the error would end the process.
    this.pool.on('error', onThreadLost)
  }

  /**
   * Runs a job when it is the owner's turn, and calls `readTask` then. Null if the job takes too much time or memory. Throws
   * BudgetExhaustedError if the owner waits too long for its turn, and the signal's reason if it aborts.
   */
  async run<Name extends keyof Jobs>(
    name: Name,
    owner: string,
    readTask: () => Jobs[Name]['task'] | Promise<Jobs[Name]['task']>,
    clientGone: AbortSignal,
  ): Promise<{ result: Jobs[Name]['result'] } | null> {
    const release = await this.turns.take(owner, 1, clientGone)
    try {
      const task = await readTask()
      const { filename, timeoutMs } = WORKERS[name]
      const timeout = AbortSignal.timeout(timeoutMs)
      const signal = AbortSignal.any([timeout, clientGone])
      return await this.pool.run(task, { name, filename, signal }).then(
        (result: Jobs[Name]['result']) => ({ result }),
        (error: unknown) => {
          clientGone.throwIfAborted()
          if (timeout.aborted || isOutOfMemory(error)) return null
          throw error
        },
      )
    } finally {
      release()
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.destroy()
  }
}
