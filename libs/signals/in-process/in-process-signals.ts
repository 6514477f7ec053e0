import type { Signals } from '../signals.js'

/** Signals between the roles of one process. */
export class InProcessSignals implements Signals {
  private readonly listeners = new Map<string, Set<() => void>>()

  publish(channel: string): void {
    for (const listener of this.listeners.get(channel) ?? []) queueMicrotask(listener)
  }

  subscribe(channel: string, listener: () => void): Promise<() => void> {
    const listeners = this.listeners.get(channel) ?? new Set()
    this.listeners.set(channel, listeners.add(listener))
    return Promise.resolve(() => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.listeners.get(channel) === listeners) this.listeners.delete(channel)
    })
  }

  close(): Promise<void> {
    this.listeners.clear()
    return Promise.resolve()
  }
}
