import { Controller, Get, HttpCode, Param, Post } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { HtmlCheck } from '#libs/mail/html-check/html-check.js'
import { AcceptInboxTokens, type Principal, Caller, RequireScope } from '../access/principal.js'
import { untilClientLeaves } from '../http/budgets.js'
import { Reply } from '../http/headers.js'
import { Problem } from '../http/problems.js'
import { endTurn } from '../http/request-turns.js'
import { keepAnswerUnstored } from '../idempotency/idempotency.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { LinkChecks, MAX_LINKS, MAX_REDIRECTS } from './link-checks.js'
import { MessageContent } from './message-content.js'
import { CheckedLink } from './message-schemas.js'

/** Checks of a message before it is sent to customers, under both paths of its inbox. */
@Controller(['v1/inboxes/:inboxId/messages/:messageId', 'v1/emails/:inboxId/messages/:messageId'])
@Tag('Messages')
export class MessageChecksController {
  constructor(
    private readonly content: MessageContent,
    private readonly links: LinkChecks,
    private readonly instance: Instance,
  ) {}

  @Get('html-check')
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  @Describe({
    summary: "Check which mail clients support a message's HTML",
    description:
      'Lists the features of HTML and CSS that the message uses and that some mail clients do not support, or only ' +
      'partially. The data of caniemail.com is part of the server: nothing is requested. 404 for a message without HTML.',
    answer: { description: 'The support of its HTML.', schema: HtmlCheck },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'html-too-complex', 'busy'],
  })
  async checkInboxMessageHtml(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Reply() reply: FastifyReply,
  ) {
    const check = await this.content.checkHtml(await this.content.find(principal, inboxId, messageId), reply)
    void reply.type('application/json; charset=utf-8')
    return check
  }

  @Post('link-check')
  @HttpCode(200)
  @RequireScope('inboxes')
  @Describe({
    summary: "Request a message's links",
    description:
      `Requests the first ${MAX_LINKS} http and https links of the message with HEAD, or with GET if HEAD is refused, and ` +
      `follows up to ${MAX_REDIRECTS} redirects. Content is not read. Takes up to 25 seconds. Every link of the message is in ` +
      'the answer, in its order. The same addresses are refused as for webhooks. The answer is never stored: a repeat with ' +
      'the same Idempotency-Key requests the links again.',
    answer: { description: 'The links, with their statuses.', schema: Type.Array(CheckedLink) },
    problems: ['inbox-deleted', 'inbox-expired', 'message-deleted', 'link-check-disabled', 'busy'],
  })
  async checkInboxMessageLinks(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('messageId') messageId: string,
    @Reply() reply: FastifyReply,
  ) {
    if (this.instance.settings.publicInbox) {
      const detail = 'Links are not requested on a server with public inboxes (MAYFLY_PUBLIC_INBOX).'
      throw new Problem('link-check-disabled', { detail })
    }
    const { request } = reply
    keepAnswerUnstored(request)
    const found = await this.content.find(principal, inboxId, messageId)
    const { opened } = await this.content.open(found, reply)
    const hrefs = opened.mail.links.map(({ href }) => href)
    endTurn(request)
    const checked = await untilClientLeaves(request, (clientGone) =>
      this.links.check(principal.accountId, hrefs, clientGone),
    )
    // The message may have been deleted meanwhile.
    await this.content.find(principal, inboxId, messageId)
    return checked
  }
}
