import { setImmediate as nextTurn } from 'node:timers/promises'
import { createHash, hash } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { asOf, type ActiveInbox, type EndedInbox } from '#libs/domain/inbox/inbox.js'
import type { Address } from '#libs/domain/inbox/events.js'
import { readHeader } from '#libs/mail/mime/parts.js'
import { unsealMail } from '#libs/ports/key-vault/sealing.js'
import type { MailOwner, MessageRow } from '#libs/ports/read-model/views.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { MailRead } from '../http/budgets.js'
import { hasLabels, type Label } from '../inboxes/inbox-requests.dto.js'
import { Instance } from '../instance.js'
import type { ReadableMessage } from '../messages/environment-mail.js'
import { MessageReader } from '../messages/message-reader.js'
import { Views } from '../views.js'
import type { RunMessage } from './comparison.js'

/** Inboxes, or messages, that are read at once. */
const AT_ONCE = 32
/** Messages of this size together are read at once; a larger one alone. */
const BYTES_AT_ONCE = 256 * 1024
/** Rows of an inbox that are read at once. */
const ROWS = 32
/** The part of a source that is hashed before other requests run. */
const HASHED_BYTES = 1024 * 1024

/** The mail of a load run: of the unprotected inboxes with a label. */
@Injectable()
export class RunMail {
  constructor(
    private readonly views: Views,
    private readonly instance: Instance,
    private readonly reader: MessageReader,
  ) {}

  /**
   * The messages of active inboxes, before the offsets `ends` of the partitions: inbox by inbox, in the order of their
   * mail. `headerName` is the header with their ids, in lower case. `onInboxes` gets each page of those inboxes. Throws catching-up if a key is not known yet, and
   * the errors of `read`. The views must be complete.
   */
  async *messages(
    owner: MailOwner,
    label: Label,
    ends: readonly number[],
    headerName: string,
    read: MailRead,
    onInboxes: (inboxes: readonly ActiveInbox[]) => void,
  ): AsyncGenerator<RunMessage> {
    for await (const batch of inBatches(this.sealed(owner, label, ends, onInboxes), read)) {
      const opened = await Promise.all(batch.map((sealed) => this.open(sealed, headerName)))
      for (const message of opened) if (message !== null) yield message
    }
  }

  /** The inbox with an address if it had the label and has ended. */
  async endedInbox(
    { accountId, environment }: MailOwner,
    label: Label,
    address: Address,
  ): Promise<EndedInbox | null> {
    const row = await this.views.inboxes.inboxAt(address)
    const inbox = row === null ? null : asOf(row.inbox, this.instance.now())
    if (inbox === null || inbox.state === 'active' || !hasLabels(inbox, [label])) return null
    return inbox.accountId === accountId && inbox.environment === environment ? inbox : null
  }

  private async *sealed(
    owner: MailOwner,
    label: Label,
    ends: readonly number[],
    onInboxes: (inboxes: readonly ActiveInbox[]) => void,
  ): AsyncGenerator<ReadableMessage> {
    for await (const page of this.views.activeInboxes(owner, [label], this.instance.now)) {
      const open = page.filter(({ isProtected }) => !isProtected)
      onInboxes(open)
      const withMail = open.filter(({ messageCount }) => messageCount > 0)
      for (const inboxes of chunksOf(withMail, AT_ONCE)) {
        const all = await Promise.all(
          inboxes.map(async (inbox) => ({
            ...{ inbox, key: await this.reader.findKey(inbox.id) },
            rows: await this.rows(inbox, 0, ends),
          })),
        )
        for (const { inbox, key, rows: first } of all) {
          if (key === null) continue
          for (let rows = first; ;) {
            for (const { message } of rows) if (message.state === 'present') yield { inbox, key, message }
            const last = rows.at(-1)
            if (last === undefined || rows.length < ROWS) break
            rows = await this.rows(inbox, last.offset + 1, ends)
          }
        }
      }
    }
  }

  private rows({ id: inboxId }: ActiveInbox, from: number, ends: readonly number[]): Promise<MessageRow[]> {
    const to = ends[this.views.partitionOf(inboxId)] ?? 0
    return this.views.inboxes.listMessages({ inboxId, order: 'asc', from, to, limit: ROWS })
  }

  /** Null if the message has been deleted meanwhile. */
  private async open(
    { inbox, key, message }: ReadableMessage,
    headerName: string,
  ): Promise<RunMessage | null> {
    const { id, receivedAt } = message
    const sealed = await this.views.inboxes.raw({ inboxId: inbox.id, messageId: id })
    if (sealed === null) return null
    const { envelope, raw } = await unsealMail(key, inbox.id, id, sealed)
    return {
      ...{ id, inboxId: inbox.id, receivedAt, mailbox: inbox.address, recipient: envelope.rcptTo },
      headerId: readHeader(raw, headerName),
      duplicateOf: envelope.duplicateOf,
      digest: () => digestOf(raw),
    }
  }
}

/** Batches of messages, after the pace of `read` allows them. */
async function* inBatches(
  messages: AsyncIterable<ReadableMessage>,
  read: MailRead,
): AsyncGenerator<ReadableMessage[]> {
  let batch: ReadableMessage[] = []
  let bytes = 0
  for await (const sealed of messages) {
    const { size } = sealed.message
    if (batch.length === AT_ONCE || (batch.length > 0 && bytes + size > BYTES_AT_ONCE)) {
      yield batch
      batch = []
      bytes = 0
    }
    await read.pace(size)
    batch.push(sealed)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

/** SHA-256 of a source. */
async function digestOf(raw: Buffer): Promise<Uint8Array> {
  if (raw.length <= HASHED_BYTES) return hash('sha256', raw, 'buffer')
  const hashing = createHash('sha256')
  for (let at = 0; at < raw.length; at += HASHED_BYTES) {
    hashing.update(raw.subarray(at, at + HASHED_BYTES))
    await nextTurn()
  }
  return hashing.digest()
}
