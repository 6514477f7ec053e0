import { createRequire } from 'node:module'

interface RequestQueue {
  pending: readonly unknown[]
  scheduleCheckPendingRequests(): void
}

/**
 * kafkajs 2.2.4 looks every millisecond, on every connection, whether a request waits to be sent, for as long as the
 * connection lasts (github.com/tulios/kafkajs/issues/1704), which costs a process with a few consumers some percent
 * of a core and warns of a negative timeout. Afterwards it looks only while one waits.
 */
export function checkOnlyWhatIsPending(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as {
    prototype: RequestQueue
  }
  const schedule = Object.getOwnPropertyDescriptor(prototype, 'scheduleCheckPendingRequests')?.value as
    ((this: RequestQueue) => void) | undefined
  if (schedule === undefined) return
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this)
  }
}
