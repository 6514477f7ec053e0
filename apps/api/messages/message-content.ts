import { Injectable } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { Principal } from '../access/principal.js'
import { RequestBudgets, untilClientLeaves } from '../http/budgets.js'
import { notFound, Problem } from '../http/problems.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import type { AttachmentContent } from './content-worker.js'
import { ContentPool } from './content-pool.js'
import { openExtractor, withMatches, type FoundMessage } from './extraction.js'
import { FirstReadings, MessageReader, type PresentMessage } from './message-reader.js'

/** A message of an inbox whose mail the caller may read. */
export interface PlacedMessage {
  inbox: ActiveInbox
  message: PresentMessage
}

/** The memory of a message's JSON with its source, relative to the size of the source. */
const WITH_SOURCE_FACTOR = 3

/**
 * Reads the content of single messages, within the budgets of the account. Each method throws as `MessageReader.find` if
 * the message has been deleted meanwhile.
 */
@Injectable()
export class MessageContent {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly reader: MessageReader,
    private readonly pool: ContentPool,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
  ) {}

  /** Throws the errors of `openContent` and `MessageReader.find`. */
  async find(principal: Principal, inboxId: string, messageId: string): Promise<PlacedMessage> {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    return { inbox, message: await this.reader.find(inbox, messageId) }
  }

  /** The message, with what an expression finds in it, and its source if `raw`. Throws the errors of `openExtractor`. */
  async open(
    { inbox, message }: PlacedMessage,
    reply: FastifyReply,
    { raw: hasRaw, extract }: { raw: boolean; extract?: string | undefined } = { raw: false },
  ): Promise<{ opened: FoundMessage; raw: Buffer | null }> {
    const key = await this.reader.keyOf(inbox.id)
    const [opened, raw] = await this.budgets.read(reply.request, async (read) => {
      const extractor = await openExtractor(this.pool, extract, inbox.accountId, read.signal)
      await read.pace(message.size)
      await this.budgets.holdAnswer(reply, message.size * (hasRaw ? WITH_SOURCE_FACTOR : 1))
      const [opened, raw] = await Promise.all([
        this.reader.open(key, inbox.id, message),
        hasRaw ? this.reader.raw(key, inbox.id, message.id) : null,
      ])
      return [opened === null ? null : await withMatches(opened, extractor), raw] as const
    })
    if (opened === null || (hasRaw && raw === null)) return this.reader.throwDeleted(inbox, message.id)
    return { opened, raw }
  }

  /** The source, byte for byte. */
  async source({ inbox, message }: PlacedMessage, reply: FastifyReply): Promise<Buffer> {
    const source = await this.budgets.read(reply.request, async (read) => {
      await read.pace(message.size)
      await this.budgets.holdAnswer(reply, message.size)
      return this.readSource({ inbox, message })
    })
    this.readings.note(inbox, message)
    return source
  }

  /** The attachment with an index, which may be any text. Throws not-found. */
  async attachment(found: PlacedMessage, index: string, reply: FastifyReply): Promise<AttachmentContent> {
    const { inbox, message } = found
    const key = await this.reader.keyOf(inbox.id)
    const opened = await this.budgets.read(reply.request, async (read) => {
      await read.pace(message.size)
      return this.reader.open(key, inbox.id, message)
    })
    // Only listed attachments are read, so that a mail that could not be parsed is not parsed again.
    if (opened?.mail.attachments.some((listed) => String(listed.index) === index) !== true)
      throw noAttachment(index)
    await this.budgets.holdAnswer(reply, message.size)
    const read = async () => ({ raw: await this.readSource(found), index: Number(index) })
    const done = await untilClientLeaves(reply.request, (clientGone) =>
      this.pool.run('openAttachment', inbox.accountId, read, clientGone),
    )
    if (done === null) {
      const detail = 'Reading the attachment took more time or memory than allowed.'
      throw new Problem('internal-error', { detail })
    }
    if (done.result === null) throw noAttachment(index)
    this.readings.note(inbox, message)
    return done.result
  }

  /** What mail clients support of the HTML, as JSON. Throws not-found if the message has none, and html-too-complex. */
  async checkHtml(found: PlacedMessage, reply: FastifyReply): Promise<Buffer> {
    const { html } = (await this.open(found, reply)).opened.mail
    if (html === null) throw notFound('The message has no HTML.')
    const done = await untilClientLeaves(reply.request, (clientGone) =>
      this.pool.run('checkHtml', found.inbox.accountId, () => html, clientGone),
    )
    if (done === null || done.result === null) {
      const detail = 'The HTML of the message is nested too deep, or takes too long to check.'
      throw new Problem('html-too-complex', { detail })
    }
    await this.budgets.holdAnswer(reply, done.result.length)
    return Buffer.from(done.result)
  }

  private async readSource({ inbox, message: { id } }: PlacedMessage): Promise<Buffer> {
    const raw = await this.reader.raw(await this.reader.keyOf(inbox.id), inbox.id, id)
    return raw ?? this.reader.throwDeleted(inbox, id)
  }
}

function noAttachment(index: string): Problem {
  return notFound(`The message has no attachment ${index.slice(0, 20)}.`)
}
