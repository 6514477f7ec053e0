/**
 * What is stopped once, however often it is asked for. The last work of who asks first is done in between; where
 * that rejects it goes on all the same, and only who gave it is told.
 */
export class Stopping {
  private underWay: Promise<void> | null = null

  /** `stopAll` calls `last`, which never rejects, at the time for it. */
  constructor(private readonly stopAll: (last: () => Promise<void>) => Promise<void>) {}

  get hasBegun(): boolean {
    return this.underWay !== null
  }

  async stop(last: () => Promise<void> = nothing): Promise<void> {
    let work = Promise.resolve()
    this.underWay ??= this.stopAll(async () => {
      work = Promise.resolve().then(last)
      await Promise.allSettled([work])
    })
    await this.underWay
    await work
  }
}

const nothing = () => Promise.resolve()
