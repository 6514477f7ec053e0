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
    // A timer starts at the time that the event loop last looked at its clock, so it may fire too early.
    while (this.earlyMs > 0) await pause(Math.ceil(this.earlyMs))
    this.next = null
    const run = this.work()
    this.begunAt = performance.now()
    this.underWay = run
    return run
  }

  private get earlyMs(): number {
    return this.begunAt + this.apartMs - performance.now()
  }
}
