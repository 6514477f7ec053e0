/*
 * Signals that something has changed, between processes or within one, and a doorbell to wait for them.
 */

/** Wakes those who wait for a change. A signal may be lost, so waiters must also check now and then. */
export interface Signals {
  /** Returns at once. Listeners are called soon after. */
  publish(channel: string): void
  /** Resolves with a function that unsubscribes, once all signals published from then on reach the listener. */
  subscribe(channel: string, listener: () => void): Promise<() => void>
  close(): Promise<void>
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
      // The subscription may have ended by then.
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

/** Wakes one waiter. A ring without a waiter is kept for the next one. */
export class Doorbell {
  private isRung = false
  private wake: (() => void) | null = null

  ring(): void {
    this.isRung = true
    this.wake?.()
  }

  /** Resolves at the next ring with true, or after the time limit with false. */
  async wait(ms: number): Promise<boolean> {
    if (!this.isRung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    const { isRung } = this
    this.wake = null
    this.isRung = false
    return isRung
  }
}
