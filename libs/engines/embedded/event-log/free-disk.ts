import { statfs } from 'node:fs/promises'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'

/** For work in progress and what follows from it: views, answers, usage figures. */
const RESERVED_BYTES = 64 << 20
/** The reserve of a small disk is this share of it. */
const RESERVED_SHARE = 1 / 16
const CHECK_EVERY_MS = 100

/**
 * The free space of the disk that holds a folder. Appends are refused before it is full: what is on the log must still be
 * processed, and a failed write does harm (lmdb 3.5 formats its error into 100 bytes, whether it fits or not).
 */
export class FreeDisk {
  private checkedAtMs = -Infinity

  constructor(private readonly folder: string) {}

  /** Rejects with LogUnavailableError if only the reserve is left. */
  async require(): Promise<void> {
    if (performance.now() - this.checkedAtMs < CHECK_EVERY_MS) return
    const { free, reserved } = await this.measure()
    if (free < reserved) {
      throw new LogUnavailableError(`the disk has ${free} bytes left, of which ${reserved} are reserved`)
    }
    this.checkedAtMs = performance.now()
  }

  /** Bytes that may still be written until appends are refused; negative if they are. */
  async availableBytes(): Promise<number> {
    const { free, reserved } = await this.measure()
    return free - reserved
  }

  private async measure(): Promise<{ free: number; reserved: number }> {
    const { bavail, blocks, bsize } = await statfs(this.folder)
    const reserved = Math.ceil(Math.min(RESERVED_BYTES, blocks * bsize * RESERVED_SHARE))
    return { free: bavail * bsize, reserved }
  }
}
