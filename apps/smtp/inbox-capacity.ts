import { LRUCache } from 'lru-cache'
import type { InboxRow } from '#libs/ports/read-model/views.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'

/** A place in an inbox, taken for one mail. */
export interface Place {
  /** The mail is on the log, and counted by the inbox's row once that shows the offset. */
  fill(offset: number): void
  /** No longer needed, unless it was filled. Harmless to repeat. */
  leave(): void
}

/** Mails that an inbox's row need not count yet. */
interface Uncounted {
  underWay: number
  /** Of those on the log. */
  offsets: Set<number>
}

const MAX_INBOXES = 10_000
/** The views show a mail long before that, or mail is refused since they are behind. */
const LONGEST_MS = 60_000

/**
 * Counts the mails that this process has in hand or on the log before the views do, so that mails which come close
 * together fill an inbox to its last place and not past it. What other processes take meanwhile it can't know.
 */
export class InboxRoom {
  private readonly uncounted = new LRUCache<InboxId, Uncounted>({ max: MAX_INBOXES, ttl: LONGEST_MS })

  /** Null if the inbox is full. To be asked with a row as soon as that is read. */
  take({ inbox, endOffset }: InboxRow): Place | null {
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
    const leave = () => {
      if (isUnderWay) uncounted.underWay -= 1
      isUnderWay = false
    }
    return {
      fill(offset) {
        leave()
        offsets.add(offset)
      },
      leave,
    }
  }
}
