import { setTimeout as pause } from 'node:timers/promises'
import { ParseThread, ThreadEndedError } from './parse-thread.js'
import { warmingTasks } from './warming.js'

export interface ParseThreadsOptions {
  /** How many there are beside the one for what presses. */
  count: number
  memoryMib: number
  /** Told of a thread that ended by itself. */
  onLost: (error: unknown) => void
  /** A thread has become free. */
  onReady: () => void
}

/** Between tries to start a thread that does not come up. */
const RETRY_MS = 500

/** Accepting mail goes before reading it: what was not accepted is lost to its sender, what was can wait, a little. */
const NICENESS = { usual: 5, pressing: 0 } as const

export type ThreadKind = keyof typeof NICENESS

/**
 * Threads, each warm before it is given away: so many usual ones, and one more for what presses, which yields to
 * nobody. One that is lost is replaced meanwhile.
 */
export class ParseThreads {
  private readonly idle: Record<ThreadKind, ParseThread[]> = { usual: [], pressing: [] }
  private readonly kinds = new Map<ParseThread, ThreadKind>()
  private readonly started: Promise<unknown>
  private isClosed = false

  constructor(private readonly options: ParseThreadsOptions) {
    const usual = Array.from({ length: options.count }, () => this.start('usual'))
    this.started = Promise.all([...usual, this.start('pressing')])
  }

  /** Resolves once all of the first ones are warm. */
  async ready(): Promise<void> {
    await this.started
  }

  get free(): number {
    return this.idle.usual.length + this.idle.pressing.length
  }

  hasFree(kind: ThreadKind): boolean {
    return this.idle[kind].length > 0
  }

  /** Null if none is free. */
  take(kind: ThreadKind): ParseThread | null {
    return this.idle[kind].pop() ?? null
  }

  giveBack(thread: ParseThread): void {
    const kind = this.kinds.get(thread)
    if (kind !== undefined) this.idle[kind].push(thread)
  }

  /** Of one that was lost, or is to be. */
  replace(thread: ParseThread): void {
    const kind = this.kinds.get(thread)
    this.kinds.delete(thread)
    void thread.end()
    if (kind !== undefined) void this.start(kind)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.kinds.keys()].map((thread) => thread.end()))
  }

  private async start(kind: ThreadKind): Promise<void> {
    const { memoryMib, onLost, onReady } = this.options
    while (!this.isClosed) {
      const thread = new ParseThread({ memoryMib, niceness: NICENESS[kind] }, onLost)
      this.kinds.set(thread, kind)
      try {
        const orders = (await warmingTasks()).map((task) => ({ task, defeat: null }))
        await thread.run(orders, () => undefined)
        this.giveBack(thread)
        onReady()
        return
      } catch (error) {
        this.kinds.delete(thread)
        await thread.end()
        if (!(error instanceof ThreadEndedError)) await pause(RETRY_MS)
      }
    }
  }
}
