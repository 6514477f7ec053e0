import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { Piscina } from 'piscina'
import { Problem } from '../http/problems.js'
import type { AttachmentContent, AttachmentRequest } from './attachment-worker.js'

const MEMORY_MIB = 512
const TIMEOUT_MS = 30_000
const MOST_WAITING = 64
const IDLE_MS = 10_000

/** Reads attachments in a thread, which is there only while it is used: a large mail must not hold up requests. */
@Injectable()
export class AttachmentPool implements OnApplicationShutdown {
  private readonly pool = new Piscina<AttachmentRequest, AttachmentContent | null>({
    filename: new URL('./attachment-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: 1,
    maxQueue: MOST_WAITING,
    idleTimeout: IDLE_MS,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
  })

  /** Null where the mail has no attachment of that index. Throws internal-error where reading takes too long. */
  async read(raw: Buffer, index: number): Promise<AttachmentContent | null> {
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
