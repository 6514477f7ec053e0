import type { OnApplicationShutdown } from '@nestjs/common'
import pLimit from 'p-limit'
import { Piscina } from 'piscina'
import { Problem } from '../http/problems.js'
import type { AttachmentContent, AttachmentRequest } from './attachment-worker.js'

const MEMORY_MIB = 512
const TIMEOUT_MS = 10_000
/** Sources in memory at once: who waits for the thread has not read its mail yet. */
const MOST_SOURCES = 4
const IDLE_MS = 10_000

/** Reads attachments in a thread, which is there only while it is used: a large mail must not hold up requests. */
export class AttachmentPool implements OnApplicationShutdown {
  private readonly pool = new Piscina<AttachmentRequest, AttachmentContent | null>({
    filename: new URL('./attachment-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: IDLE_MS,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
  })

  private readonly whenThereIsRoom = pLimit(MOST_SOURCES)
  /** Jobs wait here, not in the pool, so that a job's time begins when the thread takes it. */
  private readonly whenThreadIsFree = pLimit(1)

  /** `onThreadLost` is told of a thread that ended with nobody waiting for it. */
  constructor(onThreadLost: (error: unknown) => void) {
    // One that runs out of memory while it is ended for its time: unheard, it would end the process.
    this.pool.on('error', onThreadLost)
  }

  /** Null where the mail has no attachment of that index. Throws internal-error where reading takes too long. */
  async read(source: () => Promise<Buffer>, index: number): Promise<AttachmentContent | null> {
    return this.whenThereIsRoom(async () => {
      const raw = await source()
      return this.whenThreadIsFree(() => this.cut(raw, index))
    })
  }

  private async cut(raw: Buffer, index: number): Promise<AttachmentContent | null> {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    try {
      return await this.pool.run({ raw, index }, { signal })
    } catch (cause) {
      if (!signal.aborted) throw cause
      throw new Problem('internal-error', { detail: 'Reading the attachment took longer than allowed.' })
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.destroy()
  }
}
