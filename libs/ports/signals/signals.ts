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

/** The listeners of a channel. The same function may be added more than once. */
export class Listeners {
  private readonly subscriptions = new Set<{ listener: () => void }>()

  get isEmpty(): boolean {
    return this.subscriptions.size === 0
  }

  /** Returns a function that removes the listener again. */
  add(listener: () => void): () => void {
    const subscription = { listener }
    this.subscriptions.add(subscription)
    return () => this.subscriptions.delete(subscription)
  }

  clear(): void {
    this.subscriptions.clear()
  }

  /** Calls each listener soon, unless it is removed by then. */
  call(): void {
    for (const subscription of this.subscriptions) {
      queueMicrotask(() => {
        if (this.subscriptions.has(subscription)) subscription.listener()
      })
    }
  }
}

/** Signals between the roles of one process. */
export class InProcessSignals implements Signals {
  private readonly channels = new Map<string, Listeners>()

  publish(channel: string): void {
    this.channels.get(channel)?.call()
  }

  subscribe(channel: string, listener: () => void): Promise<() => void> {
    const listeners = this.channels.get(channel) ?? new Listeners()
    this.channels.set(channel, listeners)
    const remove = listeners.add(listener)
    return Promise.resolve(() => {
      remove()
      if (listeners.isEmpty && this.channels.get(channel) === listeners) this.channels.delete(channel)
    })
  }

  close(): Promise<void> {
    for (const listeners of this.channels.values()) listeners.clear()
    this.channels.clear()
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
