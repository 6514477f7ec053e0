import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { MailRead } from '../http/budgets.js'
import type { MatchFilters } from './message-filters.js'
import type { PartitionRanges } from './partition-merge.js'

/** The mail that a list or a wait looks through: that of an inbox, or of an environment. */
export interface MailSource {
  /** The base of links in its messages. */
  inboxesPath: string
  /** The position of a cursor, or else the beginning. Throws invalid-request for a cursor of other mail. */
  positionOf: (cursor: string | undefined) => MailPosition
  cursorOf: (position: MailPosition) => string
  /** Examines the messages from a position on, in complete views, until `examine` ends the scan. */
  scan: (query: ScanQuery, start: MailPosition, read: MailRead, examine: Examine) => Promise<Scanned>
  /** The maximum time until it must be read again. */
  rereadMs: () => number
  /** Why a wait found no message: `ifNone` if there was none to examine, and a reason why one may be missing. */
  explain: (query: EntryFilters & { cursor?: string }) => { ifNone: string; hint: string | null }
}

/**
 * A position in mail: an offset for each of its partitions. As with `OffsetCursor`, only the pages of a descending list
 * have an end of the range, and the end of the mail when the first page was read.
 */
export interface MailPosition {
  from: readonly number[]
  range: { to: readonly number[]; end: readonly number[] } | null
}

/** The filters that need no opened message. */
export interface EntryFilters extends Pick<MatchFilters, 'since' | 'until'> {
  label?: string[]
}

type ScanQuery = EntryFilters & Pick<PartitionRanges, 'order'>

/** A message that a scan has opened. */
export interface ScannedMessage {
  inbox: ActiveInbox
  message: OpenedMessage
}

/** How a scan goes on after a message. If it ends before that message, the next scan begins with it. */
type Verdict = 'continue' | 'end-before' | 'end-after'
export type Examine = (scanned: ScannedMessage) => Promise<Verdict>

export interface Scanned {
  /**
   * The position after what was examined, or after the message that ended the scan. In descending order without such a
   * message, the end of the mail when the first scan began.
   */
  position: MailPosition
  /** Where the next scan begins; null if everything was examined, or a scan ended after a message. */
  next: MailPosition | null
}

/** An entry of the mail, by the index of its partition. */
export interface ScanEntry {
  partition: number
  offset: number
  /** Null if it is not wanted, or has been deleted. With `later`, the scan has examined enough and ends before it. */
  scanned: ScannedMessage | 'later' | null
}

/** Examines the entries that `list` generates from a position on. `ends` are the offsets after the mail. */
export async function scan(
  { from, range }: MailPosition,
  order: PartitionRanges['order'],
  ends: readonly number[],
  list: (range: PartitionRanges) => AsyncIterable<ScanEntry>,
  examine: Examine,
): Promise<Scanned> {
  // Views that are being rebuilt may end before the position.
  const to = range?.to ?? ends.map((end, partition) => Math.max(end, from[partition] ?? 0))
  const end = range?.end ?? to
  const isAscending = order === 'asc'
  /** The rest of the range begins here in ascending order, and ends here in descending order. */
  const rest = [...(isAscending ? from : to)]
  for await (const { partition, offset, scanned } of list({ order, from, to })) {
    const isEnough = scanned === 'later'
    const verdict = isEnough ? 'end-before' : scanned === null ? 'continue' : await examine(scanned)
    if (verdict === 'end-before') {
      return isAscending
        ? { position: { from: rest, range: null }, next: { from: rest, range } }
        : { position: { from: end, range: null }, next: { from, range: { to: rest, end } } }
    }
    rest[partition] = isAscending || verdict === 'end-after' ? offset + 1 : offset
    if (verdict === 'end-after') return { position: { from: rest, range: null }, next: null }
  }
  return { position: { from: isAscending ? to : end, range: null }, next: null }
}
