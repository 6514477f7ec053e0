import { Injectable } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { SecretKey } from '#libs/ports/key-vault/sealing.js'
import type { OffsetQuery } from '#libs/ports/read-model/lists.js'
import { callerOf } from '../access/principal.js'
import { faultsHint } from '../faults/fault-requests.dto.js'
import type { MailRead } from '../http/budgets.js'
import { inboxesPathOf, readOffsetCursor, writeOffsetCursor } from '../http/list-pages.js'
import { beingDeleted, Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Views } from '../views.js'
import { scan, type MailSource, type ScanEntry } from './mail-source.js'
import { MessageReader } from './message-reader.js'
import { entriesOf, type PartitionRanges } from './partition-merge.js'

/** Rows that are read at first. */
const FIRST_READ = 50

/** Reads the mail of an inbox, in the order of the log. */
@Injectable()
export class InboxMail {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly reader: MessageReader,
    private readonly instance: Instance,
  ) {}

  /** The mail of an inbox that the caller of the request may read. Throws the errors of `openContent`. */
  async open(request: FastifyRequest, inboxId: string): Promise<MailSource> {
    const principal = callerOf(request)
    let { inbox } = await this.inboxes.openContent(principal, inboxId)
    const { id } = inbox
    return {
      inboxesPath: inboxesPathOf(request),
      positionOf: (cursor) => {
        if (cursor === undefined) return { from: [0], range: null }
        const { from, to, end } = readOffsetCursor(id, cursor)
        return { from: [from], range: to === null ? null : { to: [to], end: [end ?? to] } }
      },
      cursorOf: ({ from: [from = 0], range }) =>
        writeOffsetCursor(id, { from, to: range?.to[0] ?? null, end: range?.end[0] ?? null }),
      scan: (query, start, read, examine) =>
        this.inboxes.readMail(principal, id, (open) => {
          inbox = open.inbox
          const list = (range: PartitionRanges) => this.opened(inbox, range, read)
          return scan(start, query.order, [open.endOffset], list, examine)
        }),
      rereadMs: () => Math.max(inbox.expiresAt.getTime() - this.instance.now().getTime(), 1),
      explain: ({ cursor }) => explain(inbox, cursor),
    }
  }

  /**
   * Opens messages one after the other, in the order of their offsets. Throws catching-up if the inbox is being deleted,
   * and the errors of `read`.
   */
  private async *opened(
    inbox: ActiveInbox,
    { order, from: [from = 0], to: [to = 0] }: PartitionRanges,
    read: MailRead,
  ): AsyncGenerator<ScanEntry> {
    const { id: inboxId } = inbox
    const list = (one: OffsetQuery) => this.views.inboxes.listMessages({ inboxId, ...one })
    let key: SecretKey | null = null
    for await (const { message: row, offset } of entriesOf({ order, from, to }, list, FIRST_READ)) {
      key ??= await this.reader.keyOf(inboxId)
      await read.pace(row.state === 'present' ? row.size : 0)
      const message = row.state === 'present' ? await this.reader.open(key, inboxId, row) : null
      if (message !== null) yield { partition: 0, offset, scanned: { inbox, message } }
      else {
        // When an inbox ends, content is deleted before the rows.
        const after = await this.views.inboxes.message({ inboxId, messageId: row.id })
        if (after?.message.state === 'present') throw beingDeleted(inboxId)
      }
    }
  }
}

function explain({ createdAt, lastMessageAt, faults }: ActiveInbox, cursor: string | undefined) {
  const hint = faultsHint(faults, 'inbox')
  const none = 'No mail has arrived in this inbox since'
  if (lastMessageAt === null) return { ifNone: `${none} it was created at ${createdAt.toISOString()}.`, hint }
  const why = cursor === undefined ? 'has been deleted' : 'is before `cursor` or has been deleted'
  return { ifNone: `${none} the last one at ${lastMessageAt.toISOString()}, which ${why}.`, hint }
}
