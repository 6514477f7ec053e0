import { Injectable } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { SecretKey } from '#libs/ports/key-vault/sealing.js'
import { RequestBudgets, untilClientLeaves } from '../http/budgets.js'
import { notFound } from '../http/problems.js'
import type { AttachmentContent } from './content-worker.js'
import { ContentPool } from './content-pool.js'
import { FirstReadings, MessageReader, type PresentMessage } from './message-reader.js'

/** A request for the content of one message. The caller has checked that it may read the inbox's mail. */
export interface ContentRequest {
  inbox: ActiveInbox
  message: PresentMessage
  request: FastifyRequest
  reply: FastifyReply
}

/** Reads the source and the attachments of messages, within the budgets of the account. */
@Injectable()
export class MessageContent {
  constructor(
    private readonly reader: MessageReader,
    private readonly pool: ContentPool,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
  ) {}

  /** The source, byte for byte. Throws as `MessageReader.find` does if the message has been deleted meanwhile. */
  async source({ inbox, message, request, reply }: ContentRequest): Promise<Buffer> {
    const source = await this.budgets.read(request, async (read) => {
      await read.pace(message.size)
      await this.budgets.holdAnswer(reply, message.size)
      return this.read(await this.reader.keyOf(inbox.id), inbox, message)
    })
    this.readings.note(inbox, [message])
    return source
  }

  /** The attachment with an index, which may be any text. Throws not-found, and as `source` does. */
  async attachment(
    { inbox, message, request, reply }: ContentRequest,
    index: string,
  ): Promise<AttachmentContent> {
    const { accountId } = inbox
    const key = await this.reader.keyOf(inbox.id)
    const opened = await this.budgets.read(request, async (read) => {
      await read.pace(message.size)
      return this.reader.open(key, inbox.id, message)
    })
    // Only listed attachments are read, so that a mail that could not be parsed is not parsed again.
    const isListed =
      opened?.mail.attachments.some((attachment) => String(attachment.index) === index) === true
    if (isListed) await this.budgets.holdAnswer(reply, message.size)
    const readSource = () => this.read(key, inbox, message)
    const found = isListed
      ? await untilClientLeaves(request, (clientGone) =>
          this.pool.readAttachment(accountId, readSource, Number(index), clientGone),
        )
      : null
    if (found === null) throw notFound(`The message has no attachment ${index.slice(0, 20)}.`)
    this.readings.note(inbox, [message])
    return found
  }

  private async read(key: SecretKey, inbox: ActiveInbox, { id }: PresentMessage): Promise<Buffer> {
    const raw = await this.reader.raw(key, inbox.id, id)
    return raw ?? this.reader.throwDeleted(inbox, id)
  }
}
