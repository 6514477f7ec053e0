/** Wakes whoever waits for something to happen. A signal may be lost, so waiters also look now and then. */
export interface Signals {
  /** Returns at once; listeners are called soon. */
  publish(channel: string): void
  /** Resolves, with a function that unsubscribes, once signals published from now on reach the listener. */
  subscribe(channel: string, listener: () => void): Promise<() => void>
  close(): Promise<void>
}

/** Wakes one waiter; a ring that comes before the waiting is kept for it. */
export class Doorbell {
  private isRung = false
  private wake: (() => void) | null = null

  ring(): void {
    this.isRung = true
    this.wake?.()
  }

  /** Resolves at the next ring, or once the time is over. */
  async wait(ms: number): Promise<void> {
    if (!this.isRung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.wake = null
    this.isRung = false
  }
}
