import type { Signals } from '#libs/ports/signals/signals.js'

interface Subscription {
  listener: () => void
  isOpen: boolean
}

/** Signals between the roles of one process. */
export class InProcessSignals implements Signals {
  private readonly subscriptions = new Map<string, Set<Subscription>>()

  publish(channel: string): void {
    for (const subscription of this.subscriptions.get(channel) ?? []) {
      queueMicrotask(() => {
        if (subscription.isOpen) subscription.listener()
      })
    }
  }

  subscribe(channel: string, listener: () => void): Promise<() => void> {
    const subscription = { listener, isOpen: true }
    const others = this.subscriptions.get(channel) ?? new Set()
    this.subscriptions.set(channel, others.add(subscription))
    return Promise.resolve(() => {
      subscription.isOpen = false
      others.delete(subscription)
      if (others.size === 0 && this.subscriptions.get(channel) === others) this.subscriptions.delete(channel)
    })
  }

  close(): Promise<void> {
    for (const subscription of [...this.subscriptions.values()].flatMap((each) => [...each])) {
      subscription.isOpen = false
    }
    this.subscriptions.clear()
    return Promise.resolve()
  }
}
