import { Body, Controller, Delete, Get, HttpCode, Param, Query } from '@nestjs/common'
import { ArrayMaxSize, IsArray, IsInt, IsString, MaxLength, Min } from 'class-validator'
import type { FastifyReply } from 'fastify'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply } from '../http/headers.js'
import { RequestBudgets } from '../http/budgets.js'
import { IsLimit } from '../http/list-pages.js'
import { FromDigits, IfGiven } from '../http/rules.js'
import { Produces, ProducesAnything } from '../http/media-types.js'
import { attachmentHeaders } from '../messages/attachment-headers.js'
import { MessageContent, type PlacedMessage } from '../messages/message-content.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { MAILPIT, matchesSearch, MAX_QUERY_CHARACTERS, parseSearch, type Search } from '../messages/search.js'
import { Mailbox, MAX_MESSAGES } from './mailbox.js'
import { headersJson, indexOfPart, messageJson, summaryJson } from './shapes.js'

/** A larger page ends early, but has at least one message. */
const PAGE_BYTES = 8_000_000
/** Ids in one request to delete messages. */
const MAX_IDS = 1_000
const PLAIN_TEXT = 'text/plain; charset=utf-8'

class ListMailpitMessages {
  @FromDigits()
  @Min(0, { message: 'start must be at least 0' })
  @IsInt({ message: 'start must be a whole number' })
  start: number = 0

  @IsLimit({ max: MAX_MESSAGES })
  limit: number = 50
}

class SearchMailpitMessages extends ListMailpitMessages {
  @MaxLength(MAX_QUERY_CHARACTERS, { message: `query may have at most ${MAX_QUERY_CHARACTERS} characters` })
  @IsString({ message: 'query must be sent once' })
  query: string = ''
}

class DeleteMailpitMessages {
  @IfGiven()
  @IsString({ each: true, message: 'IDs must be texts' })
  @ArrayMaxSize(MAX_IDS, { message: `IDs may have at most ${MAX_IDS} items` })
  @IsArray({ message: 'IDs must be a list' })
  IDs?: string[]
}

/**
 * The requests of Mailpit's API that read and delete mail, over all inboxes of the key's environment (docs/mailpit.md).
 */
@Controller('api/v1')
export class MailpitController {
  constructor(
    private readonly mailbox: Mailbox,
    private readonly content: MessageContent,
    private readonly reader: MessageReader,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
  ) {}

  @Get('messages')
  @RequireScope('inboxes', 'read')
  list(@Caller() principal: Principal, @Query() query: ListMailpitMessages, @Reply() reply: FastifyReply) {
    return this.page(principal, query, null, reply)
  }

  @Get('search')
  @RequireScope('inboxes', 'read')
  search(
    @Caller() principal: Principal,
    @Query() query: SearchMailpitMessages,
    @Reply() reply: FastifyReply,
  ) {
    return this.page(principal, query, parseSearch(query.query, MAILPIT), reply)
  }

  @Delete('messages')
  @HttpCode(200)
  @RequireScope('inboxes')
  @Produces('text/plain')
  async delete(
    @Caller() principal: Principal,
    @Body() { IDs: ids = [] }: DeleteMailpitMessages,
    @Reply() reply: FastifyReply,
  ) {
    await this.budgets.read(reply.request, (read) =>
      ids.length === 0
        ? this.mailbox.deleteAll(principal, read)
        : this.mailbox.delete(principal, new Set(ids), read),
    )
    void reply.type(PLAIN_TEXT)
    return 'ok'
  }

  @Get('message/:id')
  @RequireScope('inboxes', 'read')
  async get(@Caller() principal: Principal, @Param('id') id: string, @Reply() reply: FastifyReply) {
    return messageJson(await this.open(principal, id, reply))
  }

  @Get('message/:id/headers')
  @RequireScope('inboxes', 'read')
  async headers(@Caller() principal: Principal, @Param('id') id: string, @Reply() reply: FastifyReply) {
    return headersJson((await this.open(principal, id, reply)).mail)
  }

  @Get('message/:id/raw')
  @RequireScope('inboxes', 'read')
  @Produces('text/plain')
  async raw(@Caller() principal: Principal, @Param('id') id: string, @Reply() reply: FastifyReply) {
    const found = await this.find(principal, id, reply)
    const source = await this.content.source(found, reply)
    void reply.headers(attachmentHeaders(`${found.message.id}.eml`, PLAIN_TEXT))
    return source
  }

  @Get('message/:id/part/:part')
  @RequireScope('inboxes', 'read')
  @ProducesAnything()
  async part(
    @Caller() principal: Principal,
    @Param('id') id: string,
    @Param('part') part: string,
    @Reply() reply: FastifyReply,
  ) {
    const found = await this.find(principal, id, reply)
    const attachment = await this.content.attachment(found, indexOfPart(part), reply)
    void reply.headers(attachmentHeaders(attachment.filename, attachment.mediaType))
    return Buffer.from(attachment.content)
  }

  private find(principal: Principal, id: string, { request }: FastifyReply): Promise<PlacedMessage> {
    return this.budgets.read(request, (read) => this.mailbox.find(principal, id, read))
  }

  private async open(principal: Principal, id: string, reply: FastifyReply): Promise<OpenedMessage> {
    const found = await this.find(principal, id, reply)
    const { opened } = await this.content.open(found, reply)
    this.readings.note(found.inbox, found.message)
    return opened
  }

  /** A page of the newest messages, or of those that match a search. No message counts as read. */
  private page(
    principal: Principal,
    { start, limit }: ListMailpitMessages,
    search: Search | null,
    reply: FastifyReply,
  ): Promise<Buffer> {
    return this.budgets.read(reply.request, async (read) => {
      const items: string[] = []
      let bytes = 0
      let matching = 0
      const total = await this.mailbox.read(principal, read, async (newest, total) => {
        for await (const found of newest) {
          if (search === null && matching >= start + limit) break
          const isOnPage = matching >= start && matching < start + limit && bytes < PAGE_BYTES
          if (search !== null || isOnPage) {
            const opened = await this.reader.open(found.key, found.inbox.id, found.message)
            if (opened === null) continue
            const searchable = { message: opened, inbox: found.inbox }
            if (search !== null && !(await matchesSearch(search, searchable))) continue
            if (isOnPage) {
              const item = JSON.stringify(summaryJson(opened))
              items.push(item)
              bytes += item.length
              this.readings.note(found.inbox, found.message)
            }
          }
          matching += 1
        }
        return total
      })
      const count = search === null ? total : matching
      const numbers = {
        ...{ total, unread: total, count: items.length, start, tags: [] },
        ...{ messages_count: count, messages_unread: count },
      }
      const body = Buffer.from(`${JSON.stringify(numbers).slice(0, -1)},"messages":[${items.join(',')}]}`)
      await this.budgets.holdAnswer(reply, body.length)
      void reply.type('application/json; charset=utf-8')
      return body
    })
  }
}
