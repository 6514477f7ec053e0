import type { Signals } from '#libs/ports/signals/signals.js'

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
