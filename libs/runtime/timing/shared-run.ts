import { setTimeout as pause } from 'node:timers/promises'

/**
 * Gives each caller a run that began after its call, never one under way by then. All who wait share the next one;
 * runs don't overlap, and begin `apartMs` apart, so that any number of callers costs little.
 */
export class SharedRun<Result> {
  private next: Promise<Result> | null = null
  private underWay: Promise<unknown> = Promise.resolve()
  private begunAt = -Infinity

  constructor(
    private readonly work: () => Promise<Result>,
    private readonly apartMs: number,
  ) {}

  get(): Promise<Result> {
    this.next ??= this.begin()
    return this.next
  }

  /** Resolves once no run is under way or waited for. */
  async idle(): Promise<void> {
    while (this.next !== null) await Promise.allSettled([this.next])
    await Promise.allSettled([this.underWay])
  }

  private async begin(): Promise<Result> {
    await Promise.allSettled([this.underWay])
    const early = this.begunAt + this.apartMs - performance.now()
    // A timer leaves out parts of a millisecond.
    if (early > 0) await pause(Math.ceil(early))
    this.next = null
    this.begunAt = performance.now()
    const run = this.work()
    this.underWay = run
    return run
  }
}
