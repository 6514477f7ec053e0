import { Injectable } from '@nestjs/common'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { asOf, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { SecretKey } from '#libs/ports/key-vault/sealing.js'
import type { EnvironmentMessage, InboxRow, MailOwner } from '#libs/ports/read-model/views.js'
import type { MailRead } from '../http/budgets.js'
import { hasLabels, readLabels } from '../inboxes/inbox-requests.dto.js'
import { Instance } from '../instance.js'
import { Views } from '../views.js'
import { readEnvironmentCursor, type EnvironmentCursor } from './environment-cursor.js'
import { isReceivedInTime } from './matching.js'
import type { MatchFilters } from './message-filters.js'
import { MessageReader, type PresentMessage } from './message-reader.js'
import { mergePartitions, type PartitionRanges } from './partition-merge.js'

/*
 * Reads the mail of an environment: the lists of all partitions, and the messages that they name.
 */

/** A scan that has examined this number of entries, or opened this number of messages, ends early. */
const MAX_EXAMINED = 10_000
const MAX_OPENED = 1_000
/** Entries whose rows are read at once. */
const ROWS_AT_ONCE = 32

/** A message in the list of its environment's mail. */
export interface MailEntry extends EnvironmentMessage {
  partition: number
}

/** A message that can be opened. */
export interface ReadableMessage {
  inbox: ActiveInbox
  key: SecretKey
  message: PresentMessage
}

/** The filters that need no opened message. */
export interface EntryFilters extends Pick<MatchFilters, 'since' | 'until'> {
  label?: string[]
}

/** A message that a scan has opened. */
export interface ScannedMessage {
  entry: MailEntry
  inbox: ActiveInbox
  message: OpenedMessage
}

/** How a scan goes on after a message. If it ends before that message, the next scan begins with it. */
type Verdict = 'continue' | 'end-before' | 'end-after'

interface Scanned {
  /**
   * The position after what was examined, or after the message that ended the scan. In descending order without such a
   * message, the end of the mail when the first scan began.
   */
  position: EnvironmentCursor
  /** Where the next scan begins; null if everything was examined, or a scan ended after a message. */
  next: EnvironmentCursor | null
}

/** The mail of an environment, without that of protected inboxes. */
@Injectable()
export class EnvironmentMail {
  constructor(
    private readonly views: Views,
    private readonly instance: Instance,
    private readonly reader: MessageReader,
  ) {}

  /** The position of a cursor, or else the beginning. Throws invalid-request for a cursor of another environment. */
  startOf(owner: MailOwner, cursor: string | undefined): EnvironmentCursor {
    const partitions = this.views.partitionCount()
    if (cursor !== undefined) return readEnvironmentCursor(owner, partitions, cursor)
    return { from: Array.from({ length: partitions }, () => 0), range: null }
  }

  /**
   * Examines messages with the wanted time and labels, from a position on, until `examine` ends the scan. Throws
   * catching-up if a key is not known yet, and the errors of `read`. The views must be complete.
   */
  async scan(
    owner: MailOwner,
    query: EntryFilters & Pick<PartitionRanges, 'order'>,
    start: EnvironmentCursor,
    read: MailRead,
    examine: (scanned: ScannedMessage) => Promise<Verdict>,
  ): Promise<Scanned> {
    const { order } = query
    const ends = await this.views.endOffsets()
    const { from, range } = start
    const to = range?.to ?? ends.map((end, partition) => Math.max(end, from[partition] ?? 0))
    const end = range?.end ?? to
    /** The rest of the range begins here in ascending order, and ends here in descending order. */
    const rest = [...(order === 'asc' ? from : to)]
    let [examined, opened] = [0, 0]
    let verdict: Verdict = 'continue'
    for await (const { entry, found } of this.messages(owner, { order, from, to }, query, read)) {
      if (examined === MAX_EXAMINED || opened === MAX_OPENED) verdict = 'end-before'
      else if (found !== null) {
        const { key, inbox } = found
        const message = await this.reader.open(key, inbox.id, found.message)
        if (message !== null) verdict = await examine({ entry, inbox, message })
        opened += 1
      }
      if (verdict === 'end-before') break
      const isAfter = order === 'asc' || verdict === 'end-after'
      rest[entry.partition] = isAfter ? entry.offset + 1 : entry.offset
      if (verdict === 'end-after') return { position: { from: rest, range: null }, next: null }
      examined += 1
    }

    const hasMore = verdict === 'end-before'
    if (order === 'desc') {
      const next = hasMore ? { from, range: { to: rest, end } } : null
      return { position: { from: end, range: null }, next }
    }
    const next = hasMore ? { from: rest, range } : null
    return { position: { from: hasMore ? rest : to, range: null }, next }
  }

  /**
   * Each entry of a range, with its message if that is wanted and can be read: it exists, and its inbox has not ended.
   * `read` is paced for it.
   */
  async *messages(
    owner: MailOwner,
    range: PartitionRanges,
    filters: EntryFilters,
    read: MailRead,
  ): AsyncGenerator<{ entry: MailEntry; found: ReadableMessage | null }> {
    const labels = readLabels(filters.label)
    const inboxes = new Map<InboxId, Promise<InboxRow | null>>()
    const inboxOf = (id: InboxId) => {
      const row = inboxes.get(id) ?? this.views.inboxes.inbox(id)
      inboxes.set(id, row)
      return row
    }
    const find = async (entry: MailEntry) => {
      if (!isReceivedInTime(entry.receivedAt, filters)) return null
      const found = await this.find(entry, inboxOf)
      return found !== null && hasLabels(found.inbox, labels) ? found : null
    }
    for await (const batch of batchesOf(this.entries(owner, range))) {
      const all = await Promise.all(batch.map(find))
      for (const [index, entry] of batch.entries()) {
        const found = all[index] ?? null
        await read.pace(found?.message.size ?? 0)
        yield { entry, found }
      }
    }
  }

  /** How many messages a range has, at most `max`, with those of inboxes that have just expired. */
  async count(owner: MailOwner, range: PartitionRanges, max: number): Promise<number> {
    let count = 0
    for await (const _ of this.entries(owner, range)) {
      count += 1
      if (count === max) break
    }
    return count
  }

  private entries({ accountId, environment }: MailOwner, range: PartitionRanges): AsyncIterable<MailEntry> {
    return mergePartitions(range, async (one) => {
      const listed = await this.views.inboxes.listEnvironmentMessages({ accountId, environment, ...one })
      return listed.map((entry) => ({ ...entry, time: entry.receivedAt }))
    })
  }

  private async find(
    { inboxId, messageId }: MailEntry,
    inboxOf: (id: InboxId) => Promise<InboxRow | null>,
  ): Promise<ReadableMessage | null> {
    const [inboxRow, row] = await Promise.all([
      inboxOf(inboxId),
      this.views.inboxes.message({ inboxId, messageId }),
    ])
    const inbox = inboxRow === null ? null : asOf(inboxRow.inbox, this.instance.now())
    if (inbox?.state !== 'active' || row?.message.state !== 'present') return null
    const key = await this.reader.findKey(inboxId)
    return key === null ? null : { inbox, key, message: row.message }
  }
}

async function* batchesOf(entries: AsyncIterable<MailEntry>): AsyncGenerator<MailEntry[]> {
  let batch: MailEntry[] = []
  for await (const entry of entries) {
    batch.push(entry)
    if (batch.length < ROWS_AT_ONCE) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
