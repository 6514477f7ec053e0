import { Controller, Get, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { RequestBudgets, type MailRead } from '../http/budgets.js'
import { setNextLink } from '../http/list-pages.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { writeEnvironmentCursor } from './environment-cursor.js'
import { EnvironmentMail } from './environment-mail.js'
import { ContentPool } from './content-pool.js'
import { Extractor } from './extraction.js'
import { Matcher } from './matching.js'
import { ListEnvironmentMessages } from './message-filters.js'
import { messagesAsJson, PageMessages } from './message-pages.js'
import { FirstReadings } from './message-reader.js'
import { Message } from './message-schemas.js'

/** The messages of all inboxes of the key's environment. */
@Controller('v1/messages')
@Tag('Messages')
export class EnvironmentMessagesController {
  constructor(
    private readonly views: Views,
    private readonly mail: EnvironmentMail,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
    private readonly pool: ContentPool,
  ) {}

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
    id: 'listMessages',
    summary: 'List the messages of all inboxes',
    description:
      "The mail of the key's environment, oldest first by default, without that of protected inboxes. A message must " +
      'match all filters, and its inbox must have all labels. Only the messages of one inbox are in the order of the ' +
      'log; those of different inboxes are merged by `received_at`. A page ends early after it has examined a thousand ' +
      'messages, even if none matched: only a missing `Link` ends the list.',
    answer: {
      description: 'A page of messages, without their sources.',
      schema: Type.Array(Message),
      headers: ['Mayfly-Cursor', 'Link'],
    },
    problems: ['busy'],
  })
  async list(
    @Caller() principal: Principal,
    @Query() query: ListEnvironmentMessages,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { body, position, next } = await this.budgets.read(request, async (read) => {
      const page = await this.views.readComplete('inbox-events', () => this.page(principal, query, read))
      await this.budgets.holdAnswer(reply, page.body.length)
      return page
    })
    void reply
      .header('mayfly-cursor', writeEnvironmentCursor(principal, position))
      .type('application/json; charset=utf-8')
    if (next !== null) setNextLink(reply, writeEnvironmentCursor(principal, next))
    return body
  }

  /** Throws invalid-request for a cursor of another environment, and the errors of `scan`. */
  private async page(principal: Principal, query: ListEnvironmentMessages, read: MailRead) {
    const start = this.mail.startOf(principal, query.cursor)
    const page = new PageMessages(query.limit)
    const matcher = new Matcher(query)
    const extractor = await Extractor.open(this.pool, query.extract, principal.accountId, read.signal)
    const scanned = await this.mail.scan(principal, query, start, read, async ({ inbox, message }) => {
      if (!(await matcher.matches(message))) return 'continue'
      if (!(await page.add(message, extractor, read.signal))) return 'end-before'
      this.readings.note(inbox, [message])
      return 'continue'
    })
    return { ...scanned, body: await messagesAsJson(page.messages, '/v1/inboxes', read) }
  }
}
