import { Injectable } from '@nestjs/common'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { asOf, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { SecretKey } from '#libs/ports/key-vault/sealing.js'
import type { EnvironmentMessage, InboxRow, MailOwner } from '#libs/ports/read-model/views.js'
import { batchesOf } from '#libs/runtime/chunks.js'
import type { Principal } from '../access/principal.js'
import { faultsHint } from '../faults/fault-requests.dto.js'
import type { MailRead } from '../http/budgets.js'
import { hasLabels, readLabels } from '../inboxes/inbox-requests.dto.js'
import { Instance } from '../instance.js'
import { Views } from '../views.js'
import { readEnvironmentCursor, writeEnvironmentCursor } from './environment-cursor.js'
import {
  scan,
  type EntryFilters,
  type MailSource,
  type ScanEntry,
  type ScannedMessage,
} from './mail-source.js'
import { isReceivedInTime } from './matching.js'
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

const LABELLED = 'in inboxes of this environment with these labels'

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

/** The mail of an environment, without that of protected inboxes. */
@Injectable()
export class EnvironmentMail {
  constructor(
    private readonly views: Views,
    private readonly instance: Instance,
    private readonly reader: MessageReader,
  ) {}

  /** The mail of the caller's environment. */
  open(principal: Principal): MailSource {
    const { views } = this
    return {
      inboxesPath: '/v1/inboxes',
      positionOf: (cursor) => {
        const partitions = views.partitionCount()
        if (cursor !== undefined) return readEnvironmentCursor(principal, partitions, cursor)
        return { from: Array.from({ length: partitions }, () => 0), range: null }
      },
      cursorOf: (position) => writeEnvironmentCursor(principal, position),
      scan: (query, start, read, examine) =>
        views.readComplete('inbox-events', async () => {
          const list = (range: PartitionRanges) => this.opened(principal, range, query, read)
          return scan(start, query.order, await views.endOffsets(), list, examine)
        }),
      rereadMs: () => Infinity,
      explain: ({ label, cursor }) => {
        const inboxes = label === undefined ? 'in this environment' : LABELLED
        const ifNone = `No mail has arrived ${inboxes}${cursor === undefined ? '' : ' after `cursor`'}.`
        return { ifNone, hint: faultsHint(principal.defaultFaults, 'environment') }
      },
    }
  }

  /** The entries of a range with their messages, until enough have been examined. Throws the errors of `messages`. */
  private async *opened(
    owner: MailOwner,
    range: PartitionRanges,
    filters: EntryFilters,
    read: MailRead,
  ): AsyncGenerator<ScanEntry> {
    let [examined, opened] = [0, 0]
    for await (const { entry, found } of this.messages(owner, range, filters, read)) {
      const { partition, offset } = entry
      if (examined === MAX_EXAMINED || opened === MAX_OPENED) {
        yield { partition, offset, scanned: 'later' }
        return
      }
      examined += 1
      let scanned: ScannedMessage | null = null
      if (found !== null) {
        const { inbox, key } = found
        const message = await this.reader.open(key, inbox.id, found.message)
        if (message !== null) scanned = { inbox, message }
        opened += 1
      }
      yield { partition, offset, scanned }
    }
  }

  /**
   * Each entry of a range, with its message if that is wanted and can be read: it exists, and its inbox has not ended.
   * `read` is paced for it. Throws catching-up if a key is not known yet, and the errors of `read`.
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
    for await (const batch of batchesOf(this.entries(owner, range), ROWS_AT_ONCE)) {
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
