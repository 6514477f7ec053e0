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

interface Subscription {
  listener: () => void
}

/** Signals between the roles of one process. */
export class InProcessSignals implements Signals {
  private readonly subscriptions = new Map<string, Set<Subscription>>()

  publish(channel: string): void {
    const subscriptions = this.subscriptions.get(channel) ?? new Set()
    for (const subscription of subscriptions) {
      // It may have ended by then.
      queueMicrotask(() => {
        if (subscriptions.has(subscription)) subscription.listener()
      })
    }
  }

  subscribe(channel: string, listener: () => void): Promise<() => void> {
    const subscription = { listener }
    const others = this.subscriptions.get(channel) ?? new Set()
    this.subscriptions.set(channel, others.add(subscription))
    return Promise.resolve(() => {
      others.delete(subscription)
      if (others.size === 0 && this.subscriptions.get(channel) === others) this.subscriptions.delete(channel)
    })
  }

  close(): Promise<void> {
    for (const subscriptions of this.subscriptions.values()) subscriptions.clear()
    this.subscriptions.clear()
    return Promise.resolve()
  }
}
