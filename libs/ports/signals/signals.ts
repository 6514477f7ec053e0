import { EventEmitter } from 'node:events'

/*
 * Signals that something has changed, between processes or within one, and a doorbell to wait for them.
 */

/**
 * Wakes those who wait for a change. A signal may be lost, so waiters must also check now and then. A message is for what
 * may be lost too.
 */
export interface Signals {
  /** Returns at once. Listeners are called soon after, with the message: by default ''. */
  publish(channel: string, message?: string): void
  /**
   * Resolves with a function that unsubscribes, once all signals published from then on reach the listener. It is also
   * called, with '', if signals may have been lost.
   */
  subscribe(channel: string, listener: Listener): Promise<() => void>
  close(): Promise<void>
}

type Listener = (message: string) => void

/** Signals between the roles of one process. */
export class InProcessSignals implements Signals {
  private readonly channels = new EventEmitter().setMaxListeners(0)

  publish(channel: string, message = ''): void {
    queueMicrotask(() => this.channels.emit(channel, message))
  }

  subscribe(channel: string, listener: Listener): Promise<() => void> {
    return Promise.resolve(this.add(channel, listener))
  }

  /** Adds a listener at once, and returns a function that removes it. The same function may be added more than once. */
  add(channel: string, listener: Listener): () => void {
    const call: Listener = (message) => listener(message)
    this.channels.on(channel, call)
    return () => this.channels.off(channel, call)
  }

  hasListeners(channel: string): boolean {
    return this.channels.listenerCount(channel) > 0
  }

  close(): Promise<void> {
    this.channels.removeAllListeners()
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
