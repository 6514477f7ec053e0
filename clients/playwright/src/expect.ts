import { UnexpectedMessageError, WaitTimeoutError, type Inbox, type MatchOptions } from '@mayfly/client'
import { expect as baseExpect } from '@playwright/test'

export interface ReceivedOptions extends Omit<
  MatchOptions,
  'timeoutMs' | 'signal' | 'password' | 'idempotencyKey'
> {
  /** Milliseconds to wait: by default as long as all waits of the inbox; with `not`, 5,000. */
  timeout?: number
}

/** Playwright's `expect`, with `toHaveReceived` for inboxes. */
export const expect = baseExpect.extend({
  /** Waits for a message that matches. With `not`, passes if none has arrived within the time. */
  async toHaveReceived(inbox: Inbox, { timeout, ...filters }: ReceivedOptions = {}) {
    const hint = this.utils.matcherHint('toHaveReceived', 'inbox', this.utils.stringify(filters), {
      isNot: this.isNot,
    })
    const failure = (error: Error) => ({
      name: 'toHaveReceived',
      pass: this.isNot,
      message: () => `${hint}\n\n${error.message}`,
    })
    try {
      if (this.isNot) await inbox.expectNone({ ...filters, withinMs: timeout })
      else await inbox.waitForMessage({ ...filters, timeoutMs: timeout })
    } catch (error) {
      if (error instanceof WaitTimeoutError || error instanceof UnexpectedMessageError) return failure(error)
      throw error
    }
    return { name: 'toHaveReceived', pass: !this.isNot, message: () => hint }
  },
})
