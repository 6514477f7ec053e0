import { statfs } from 'node:fs/promises'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'

/** For what is under way, and what follows from it: views, answers, usage figures. */
const LEAST_BYTES = 64 << 20
/** A small disk is not as good as full. */
const LEAST_SHARE = 1 / 16
const LOOKED_APART_MS = 100

/**
 * The room that is left on a folder's disk. Nothing more is taken in before it is full: what was taken in must be worked
 * off, and a write that fails does harm. lmdb 3.5 prints what it was into 100 bytes, whether it fits or not.
 */
export class DiskRoom {
  private seenAtMs = -Infinity

  constructor(private readonly folder: string) {}

  /** Rejects with LogUnavailableError where less is left than there must be. */
  async mustBeLeft(): Promise<void> {
    if (performance.now() - this.seenAtMs < LOOKED_APART_MS) return
    const { free, least } = await this.look()
    if (free < least) throw new LogUnavailableError(`the disk has ${free} bytes left, and must have ${least}`)
    this.seenAtMs = performance.now()
  }

  /** Bytes that the disk may lose until nothing more is taken in; less than none if it has come to that. */
  async left(): Promise<number> {
    const { free, least } = await this.look()
    return free - least
  }

  private async look(): Promise<{ free: number; least: number }> {
    const { bavail, blocks, bsize } = await statfs(this.folder)
    return { free: bavail * bsize, least: Math.ceil(Math.min(LEAST_BYTES, blocks * bsize * LEAST_SHARE)) }
  }
}
