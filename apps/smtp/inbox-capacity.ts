import { LRUCache } from 'lru-cache'
import type { InboxRow } from '#libs/ports/read-model/views.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'

/** Capacity of an inbox that is reserved for one mail. */
export interface Reservation {
  /** To be called once the mail is on the log: the inbox's row counts it once that shows the offset. */
  fill(offset: number): void
  /** Gives the capacity back, unless it was filled. Harmless to repeat. */
  release(): void
}

/** Mails that an inbox's row need not count yet: under way, or on the log at these offsets. */
interface Uncounted {
  underWay: number
  offsets: Set<number>
}

const MAX_INBOXES = 10_000
/** The views show a mail long before that, or mail is refused because they are behind. */
const MAX_UNCOUNTED_MS = 60_000

/**
 * Counts the mails that this process is accepting, or has on the log before the views show them, so that mails which
 * come close together fill an inbox exactly. Other processes' mails are not known here.
 */
export class InboxCapacity {
  private readonly uncounted = new LRUCache<InboxId, Uncounted>({ max: MAX_INBOXES, ttl: MAX_UNCOUNTED_MS })

  /** Null if the inbox is full. To be called as soon as the row has been read. */
  reserve({ inbox, endOffset }: InboxRow): Reservation | null {
    if (inbox.state !== 'active') return null
    const { id, messageCount, maxMessages } = inbox
    const uncounted = this.uncounted.get(id) ?? { underWay: 0, offsets: new Set() }
    const { offsets } = uncounted
    for (const offset of offsets) {
      if (offset >= endOffset) break
      offsets.delete(offset)
    }
    if (messageCount + uncounted.underWay + offsets.size >= maxMessages) return null
    uncounted.underWay += 1
    this.uncounted.set(id, uncounted)
    let isUnderWay = true
    const release = () => {
      if (isUnderWay) uncounted.underWay -= 1
      isUnderWay = false
    }
    const fill = (offset: number) => {
      release()
      offsets.add(offset)
    }
    return { fill, release }
  }
}
