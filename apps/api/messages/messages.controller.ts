import { Controller, Delete, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { decide } from '#libs/domain/inbox/decide.js'
import { isId } from '#libs/domain/ids/typeid.js'
import { AcceptInboxTokens, type Principal, Caller, RequireScope } from '../access/principal.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { RequestBudgets } from '../http/budgets.js'
import { inboxesPathOf, setNextLink, writeOffsetCursor } from '../http/list-pages.js'
import { Bytes, Describe, Tag } from '../openapi/describe.js'
import { Produces, ProducesAnything } from '../http/media-types.js'
import { Inboxes, hasEnded } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { attachmentHeaders } from './attachment-headers.js'
import { ContentPool } from './content-pool.js'
import { Extractor, foundMessageJson } from './extraction.js'
import { MessageContent } from './message-content.js'
import { MessagePages, messageWithRaw } from './message-pages.js'
import { FirstReadings, MessageReader, noMessage } from './message-reader.js'
import { ListMessages, ReadMessage } from './message-filters.js'
import { DeletedMessage, Message, MessageWithRaw } from './message-schemas.js'
import { OpenedMail } from './opened-mail.js'

/** The memory of a message's JSON with its source, relative to the size of the source. */
const WITH_SOURCE_FACTOR = 3
const JSON_TYPE = 'application/json; charset=utf-8'

/** The messages of an inbox, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/messages', 'v1/emails/:inboxId/messages'])
@Tag('Messages')
export class MessagesController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly opened: OpenedMail,
    private readonly pages: MessagePages,
    private readonly reader: MessageReader,
    private readonly content: MessageContent,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
    private readonly pool: ContentPool,
  ) {}

  @Get()
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @Describe({
    id: 'listInboxMessages',
    summary: 'List messages',
    description: 'Oldest first by default. A message must match all filters.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: {
      description: 'A page of messages, without their sources.',
      schema: Type.Array(Message),
      headers: ['Mayfly-Cursor', 'Link'],
    },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async list(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListMessages,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return this.budgets.read(request, async (read) => {
      const { id } = (await this.inboxes.openContent(principal, inboxId)).inbox
      const page = await this.inboxes.readMail(principal, id, (open) =>
        this.pages.read(open, query, inboxesPathOf(request), read),
      )
      await this.budgets.holdAnswer(reply, page.body.length)
      void reply.header('mayfly-cursor', writeOffsetCursor(id, page.cursor)).type(JSON_TYPE)
      if (page.next !== null) setNextLink(reply, writeOffsetCursor(id, page.next))
      return page.body
    })
  }

  @Get(':messageId')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @Describe({
    id: 'getInboxMessage',
    summary: 'Read a message',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'The message.', schema: MessageWithRaw },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'busy'],
  })
  async get(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Query() query: ReadMessage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const message = await this.reader.find(inbox, messageId)
    const key = await this.reader.keyOf(inbox.id)
    const [found, raw] = await this.budgets.read(request, async (read) => {
      const extractor = await Extractor.open(this.pool, query.extract, principal.accountId, read.signal)
      await read.pace(message.size)
      await this.budgets.holdAnswer(reply, message.size * (query.raw ? WITH_SOURCE_FACTOR : 1))
      const [opened, raw] = await Promise.all([
        this.reader.open(key, inbox.id, message),
        query.raw ? this.reader.raw(key, inbox.id, message.id) : null,
      ])
      const found = opened === null || extractor === null ? opened : await extractor.find(opened, read.signal)
      return [found, raw] as const
    })
    if (found === null || (query.raw && raw === null)) return this.reader.throwDeleted(inbox, message.id)
    this.readings.note(inbox, [message])
    const json = foundMessageJson(found, inboxesPathOf(request))
    if (raw === null) return json
    void reply.type(JSON_TYPE)
    return messageWithRaw(json, raw)
  }

  @Get(':messageId/raw')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @Produces('message/rfc822')
  @Describe({
    id: 'getInboxMessageSource',
    summary: "Read a message's source",
    description: 'The bytes sent after DATA, without dot-stuffing. Nothing is added.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'The source.', schema: Bytes, headers: ['Content-Disposition'] },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'busy'],
  })
  async raw(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const message = await this.reader.find(inbox, messageId)
    const source = await this.content.source({ inbox, message, request, reply })
    void reply.headers(attachmentHeaders(`${message.id}.eml`, 'message/rfc822'))
    return source
  }

  @Get(':messageId/attachments/:index')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @ProducesAnything()
  @Describe({
    id: 'getInboxMessageAttachment',
    summary: "Read an attachment's content",
    description:
      'Decoded. With its own media type if that is harmless, otherwise `application/octet-stream`.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'The content.', schema: Bytes, headers: ['Content-Disposition'] },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'busy'],
  })
  async attachment(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Param('index') index: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const message = await this.reader.find(inbox, messageId)
    const found = await this.content.attachment({ inbox, message, request, reply }, index)
    void reply.headers(attachmentHeaders(found.filename, found.mediaType))
    return Buffer.from(found.content)
  }

  @Delete(':messageId')
  @RequireScope('inboxes')
  @Describe({
    id: 'deleteInboxMessage',
    summary: 'Delete a message',
    description: 'It is permanently deleted. A repeat gets the same answer.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'When it was deleted.', schema: DeletedMessage },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async delete(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') id: string,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    if (!isId('msg', id)) throw noMessage(id)
    const key = { inboxId: inbox.id, messageId: id }
    const row = await this.views.find(inbox.id, () => this.views.inboxes.message(key))
    const now = this.instance.now()
    const command = { type: 'DeleteMessage', ...key, keyId: principal.keyId, now } as const
    const { events, refusal } = decide({ inbox, message: row?.message ?? null }, command)
    if (refusal?.code === 'inbox-ended') throw hasEnded(refusal.inbox)
    if (refusal !== null) throw await this.reader.whyMissing(inbox.id, id)
    await this.recorder.record(events, principal)
    this.opened.forget(inbox.id)
    const after = await this.views.inboxes.message(key)
    if (after?.message.state === 'deleted') return { id, deleted_at: after.message.deletedAt.toISOString() }
    // The inbox and its messages were deleted in the meantime, or the views were lost and are being rebuilt.
    await this.inboxes.openContent(principal, inboxId)
    await this.views.requireComplete(inbox.id)
    throw new Error('a deleted message is still in the views')
  }
}
