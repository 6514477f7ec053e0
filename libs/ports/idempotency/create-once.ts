import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { deriveId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import type { IdempotencyStore } from './idempotency-store.js'

/** An address without an active inbox. */
export interface FreeAddress {
  address: Address
  /** The inbox that had the address before, and has ended; null if there was none. */
  previous: InboxId | null
}

interface CreateOnceOptions<Outcome> {
  idempotency: Pick<IdempotencyStore, 'reserve' | 'finish' | 'release'>
  inboxes: Pick<MailQueries, 'inboxAt'>
  /** Resolves once the views show the inbox with this id, or with an outcome for which `isCreated` is false. */
  create: (inboxId: InboxId) => Promise<Outcome>
  isCreated: (outcome: Outcome) => boolean
}

/** How long a call waits for another process that creates the same inbox. */
const WAIT_MS = 5_000
const CHECK_EVERY_MS = 25

/**
 * Creates the inbox of a free address. Of many concurrent calls in all processes, one calls `create`: the one that
 * reserves the address in the idempotency store. The others resolve with the inbox that it has created, or with null if
 * the views don't show that within five seconds. If the process is killed or `create` rejects, the next call continues
 * with the same id (docs/decisions/inboxes-made-by-mail.md).
 */
export async function createOnce<Outcome>(
  { address, previous }: FreeAddress,
  { idempotency, inboxes, create, isCreated }: CreateOnceOptions<Outcome>,
): Promise<Outcome | Inbox | null> {
  const id = hash('sha256', `inbox for mail to ${address} after ${previous}`)
  for (const deadlineMs = performance.now() + WAIT_MS; performance.now() < deadlineMs;) {
    const reserved = await idempotency.reserve({ id, fingerprint: '' })
    if (reserved.state === 'run') {
      const { run } = reserved
      const outcome = await create(deriveId('inb', run, 1)).catch(async (error: unknown) => {
        await idempotency.release(run, 'resumable')
        throw error
      })
      if (isCreated(outcome)) await idempotency.finish(run, Buffer.alloc(0))
      else await idempotency.release(run, 'undone')
      return outcome
    }
    const found = await inboxes.inboxAt(address)
    if (found !== null && found.inbox.id !== previous) return found.inbox
    await pause(CHECK_EVERY_MS)
  }
  return null
}
