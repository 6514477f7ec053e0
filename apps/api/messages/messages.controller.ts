import { Controller, Delete, Get, Param, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { decide } from '#libs/domain/inbox/decide.js'
import { isId } from '#libs/domain/ids/typeid.js'
import { inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import {
  AcceptInboxTokens,
  Caller,
  READERS,
  RequireScope,
  requireScope,
  type Principal,
} from '../access/principal.js'
import { PastMessage } from '../audit/past-schemas.js'
import { AS_OF_PROBLEMS, PastStates } from '../audit/past-states.service.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { Reply } from '../http/headers.js'
import { inboxesPathOf } from '../http/list-pages.js'
import { Produces, ProducesAnything } from '../http/media-types.js'
import { invalid, noResource } from '../http/problems.js'
import { Inboxes, hasEnded } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Bytes, Describe, Tag } from '../openapi/describe.js'
import { attachmentHeaders } from './attachment-headers.js'
import { foundMessageJson } from './extraction.js'
import { InboxMail } from './inbox-mail.js'
import { MessageContent } from './message-content.js'
import { ListInboxMessages, ReadMessage, WaitForMessage } from './message-filters.js'
import { MessagePages, messageWithRaw } from './message-pages.js'
import { FirstReadings, MessageReader, noMessage } from './message-reader.js'
import { DeletedMessage, Message, MessageWithRaw } from './message-schemas.js'
import { MessageWaits } from './message-waits.js'
import { OpenedMail } from './opened-mail.js'

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
    private readonly mail: InboxMail,
    private readonly pages: MessagePages,
    private readonly waits: MessageWaits,
    private readonly reader: MessageReader,
    private readonly content: MessageContent,
    private readonly readings: FirstReadings,
    private readonly past: PastStates,
  ) {}

  @Get('wait')
  @RequireScope(...READERS)
  @AcceptInboxTokens()
  @Describe({
    summary: 'Wait for a message',
    description:
      'Returns the first message that matches: the oldest one that is present (after `cursor` if given), or the next one ' +
      'to arrive. With `order=desc`, the newest one that is present. Nothing is consumed: two waits get the same message. ' +
      'To wait only for mail that you are about to send, read a `Mayfly-Cursor` first.',
    answer: { description: 'The message.', schema: Message, headers: ['Mayfly-Cursor'] },
    problems: ['no-matching-message', 'inbox-deleted', 'inbox-expired', 'too-many-waits', 'busy'],
  })
  waitForInboxMessage(
    @Param('inboxId') inboxId: string,
    @Query() query: WaitForMessage,
    @Reply() reply: FastifyReply,
  ) {
    if (!isId('inb', inboxId)) throw noResource('inbox', inboxId)
    const open = () => this.mail.open(reply.request, inboxId)
    return this.waits.firstMatch({ channel: inboxChannel(inboxId), open }, query, reply)
  }

  @Get()
  @RequireScope('inboxes', 'read', 'audit')
  @AcceptInboxTokens()
  @Describe({
    summary: 'List messages',
    description:
      'Oldest first by default. A message must match all filters. With `as_of` there are no filters, and no password is needed; a key that has only the scope `audit` can list them with it.',
    answer: {
      description: 'A page of messages, without their sources.',
      schema: Type.Array(Type.Union([Message, PastMessage])),
      headers: ['Mayfly-Cursor', 'Link', 'Mayfly-As-Of'],
    },
    problems: ['inbox-deleted', 'inbox-expired', ...AS_OF_PROBLEMS],
  })
  async listInboxMessages(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListInboxMessages,
    @Reply() reply: FastifyReply,
  ) {
    const { as_of: asOf } = query
    if (asOf !== undefined) {
      requireNoFilters(query)
      return this.past.messages(principal, inboxId, asOf, query, reply)
    }
    requireScope(principal, READERS)
    return this.pages.send(() => this.mail.open(reply.request, inboxId), query, reply)
  }

  @Get(':messageId')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @Describe({
    summary: 'Read a message',
    answer: { description: 'The message.', schema: MessageWithRaw },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'busy'],
  })
  async getInboxMessage(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Query() query: ReadMessage,
    @Reply() reply: FastifyReply,
  ) {
    const found = await this.content.find(principal, inboxId, messageId)
    const { opened, raw } = await this.content.open(found, reply, query)
    this.readings.note(found.inbox, found.message)
    const json = foundMessageJson(opened, inboxesPathOf(reply.request))
    if (raw === null) return json
    void reply.type('application/json; charset=utf-8')
    return messageWithRaw(json, raw)
  }

  @Get(':messageId/raw')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @Produces('message/rfc822')
  @Describe({
    summary: "Read a message's source",
    description: 'The bytes sent after DATA, without dot-stuffing. Nothing is added.',
    answer: { description: 'The source.', schema: Bytes, headers: ['Content-Disposition'] },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'busy'],
  })
  async getInboxMessageSource(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Reply() reply: FastifyReply,
  ) {
    const found = await this.content.find(principal, inboxId, messageId)
    const source = await this.content.source(found, reply)
    void reply.headers(attachmentHeaders(`${found.message.id}.eml`, 'message/rfc822'))
    return source
  }

  @Get(':messageId/attachments/:index')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @ProducesAnything()
  @Describe({
    summary: "Read an attachment's content",
    description:
      'Decoded. With its own media type if that is harmless, otherwise `application/octet-stream`.',
    answer: { description: 'The content.', schema: Bytes, headers: ['Content-Disposition'] },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'busy'],
  })
  async getInboxMessageAttachment(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Param('index') index: string,
    @Reply() reply: FastifyReply,
  ) {
    const found = await this.content.find(principal, inboxId, messageId)
    const { filename, mediaType, content } = await this.content.attachment(found, index, reply)
    void reply.headers(attachmentHeaders(filename, mediaType))
    return Buffer.from(content)
  }

  @Delete(':messageId')
  @RequireScope('inboxes')
  @Describe({
    summary: 'Delete a message',
    description: 'It is permanently deleted. A repeat gets the same answer.',
    answer: { description: 'When it was deleted.', schema: DeletedMessage },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async deleteInboxMessage(
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

/** Filters are about content, which states as of a moment do not have. */
function requireNoFilters(query: ListInboxMessages): void {
  const { as_of: _asOf, limit: _limit, order: _order, cursor: _cursor, ...filters } = query
  if (Object.values<unknown>(filters).every((filter) => filter === undefined)) return
  throw invalid({ detail: 'only limit, order and cursor can be sent with as_of', parameter: 'as_of' })
}
