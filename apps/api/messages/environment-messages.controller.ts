import { Controller, Get, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { environmentChannel } from '#libs/ports/read-model/consistent-views.js'
import { Caller, READERS, RequireScope, type Principal } from '../access/principal.js'
import { Reply } from '../http/headers.js'
import { Describe, Tag } from '../openapi/describe.js'
import { EnvironmentMail } from './environment-mail.js'
import { LabelCounts, readCountWanted } from './label-count.js'
import { ListEnvironmentMessages, WaitForEnvironmentMessage } from './message-filters.js'
import { MessagePages } from './message-pages.js'
import { Message, MessageCount } from './message-schemas.js'
import { MessageWaits } from './message-waits.js'

/** The messages of all inboxes of the key's environment. */
@Controller('v1/messages')
@Tag('Messages')
export class EnvironmentMessagesController {
  constructor(
    private readonly mail: EnvironmentMail,
    private readonly pages: MessagePages,
    private readonly waits: MessageWaits,
    private readonly counts: LabelCounts,
  ) {}

  @Get('wait')
  @RequireScope(...READERS)
  @Describe({
    summary: 'Wait for a message in any inbox',
    description:
      "Returns the first message that matches, in any inbox of the key's environment except protected ones: the oldest " +
      'one that is present (after `cursor` if given), or the next one to arrive. With `order=desc`, the newest one that ' +
      'is present. Nothing is consumed: two waits get the same message. To wait only for mail that you are about to ' +
      'send, read a `Mayfly-Cursor` of `GET /v1/messages` first.\n\nWith `label` and `count`, it waits until the inboxes ' +
      'of the label have received that many messages, and returns the counts. Deleted messages count too, and inboxes ' +
      'that ended within the last day; protected inboxes do not. After the timeout, `too_few` and `too_many` list inboxes ' +
      'that have fewer or more messages than `per_inbox`, or than an even share.',
    answer: {
      description: 'The message, or the counts.',
      schema: Type.Union([Message, MessageCount]),
      headers: ['Mayfly-Cursor'],
    },
    problems: ['no-matching-message', 'too-many-waits', 'busy'],
  })
  async waitForMessage(
    @Caller() principal: Principal,
    @Query() query: WaitForEnvironmentMessage,
    @Reply() reply: FastifyReply,
  ) {
    const counted = readCountWanted(query)
    if (counted !== null) return this.counts.wait(principal, counted, query.timeout, reply)
    const channel = environmentChannel(principal)
    return this.waits.firstMatch({ channel, open: () => this.mail.open(principal) }, query, reply)
  }

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
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
  listMessages(
    @Caller() principal: Principal,
    @Query() query: ListEnvironmentMessages,
    @Reply() reply: FastifyReply,
  ) {
    return this.pages.send(() => this.mail.open(principal), query, reply)
  }
}
