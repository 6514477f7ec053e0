/** Wakes who waits for something to happen. A signal may be lost: who waits also looks now and then. */
export interface Signals {
  /** Returns at once; listeners are called soon. */
  publish(channel: string): void
  /** Resolves once signals published from now on reach the listener, with the way to end that. */
  subscribe(channel: string, listener: () => void): Promise<() => void>
  close(): Promise<void>
}
