import { LRUCache } from 'lru-cache'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { InboxRow } from './views.js'

/** Capacity of an inbox that is reserved for one mail. */
export interface Reservation {
  /** Call this once the mail is on the log, at that offset. It counts until the inbox's row has reached the offset. */
  fill(offset: number): void
  /** Releases the capacity unless it was filled. Can be repeated. */
  release(): void
}

/** Mails that an inbox's row may not count yet: those being accepted, and those on the log at these offsets. */
interface Uncounted {
  inProgress: number
  offsets: Set<number>
}

const MAX_INBOXES = 10_000
/** Longer than the views take to show a mail: if they lag further behind, mail is refused. */
const MAX_UNCOUNTED_MS = 60_000

/**
 * Counts the mails of each inbox that its owner, the SMTP edge or the API, is accepting, or has appended and the views don't
 * show yet, so that its concurrent mails fill an inbox exactly. It does not know the mails of others.
 */
export class InboxCapacity {
  private readonly uncounted = new LRUCache<InboxId, Uncounted>({ max: MAX_INBOXES, ttl: MAX_UNCOUNTED_MS })

  /** Reserves capacity for one mail. Null if the inbox is full. Call this as soon as the row has been read. */
  reserve({ inbox, endOffset }: InboxRow): Reservation | null {
    if (inbox.state !== 'active') return null
    const { id, messageCount, maxMessages } = inbox
    const uncounted = this.uncounted.get(id) ?? { inProgress: 0, offsets: new Set() }
    const { offsets } = uncounted
    for (const offset of offsets) {
      if (offset >= endOffset) break
      offsets.delete(offset)
    }
    if (messageCount + uncounted.inProgress + offsets.size >= maxMessages) return null
    uncounted.inProgress += 1
    this.uncounted.set(id, uncounted)
    let isInProgress = true
    const release = () => {
      if (isInProgress) uncounted.inProgress -= 1
      isInProgress = false
    }
    const fill = (offset: number) => {
      release()
      offsets.add(offset)
    }
    return { fill, release }
  }
}
