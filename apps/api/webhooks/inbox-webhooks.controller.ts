import { Body, Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Principal } from '../access/authenticator.js'
import { Mint, type Minting } from '../access/minting.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { NoParameters } from '../http/no-parameters.dto.js'
import { Describe } from '../openapi/describe.js'
import { RegisterWebhook } from './webhook-requests.dto.js'
import { Webhook, WebhookWithSecret } from './webhook-schemas.js'
import { Webhooks } from './webhooks.service.js'

/** The webhooks of one inbox. Both families of paths come here; what was registered has a path of its own. */
@Controller(['v1/inboxes/:inboxId/webhooks', 'v1/emails/:inboxId/webhooks'])
export class InboxWebhooksController {
  constructor(private readonly webhooks: Webhooks) {}

  @Post()
  @HttpCode(201)
  @NeedsScope('inboxes')
  @Describe({
    id: 'createInboxWebhook',
    tag: 'Webhooks',
    summary: 'Register a webhook for one inbox',
    description: 'An inbox can have at most 20. A protected inbox requires its password.',
    takes: ['Mayfly-Inbox-Password'],
    answer: {
      description: 'The webhook, with its secret.',
      schema: WebhookWithSecret,
      headers: ['Location'],
    },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async register(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('inboxId') inboxId: string,
    @Body() body: RegisterWebhook,
    @Query() _query: NoParameters,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const registered = await this.webhooks.registerFor(principal, inboxId, body, minting)
    void reply.header('location', `/v1/webhooks/${registered.webhook.id}`)
    return this.webhooks.showNew(registered)
  }

  @Get()
  @NeedsScope('inboxes', 'read')
  @Describe({
    id: 'listInboxWebhooks',
    tag: 'Webhooks',
    summary: "List an inbox's webhooks",
    description: 'Its own ones, newest first: those for its whole environment are listed apart.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'A page of them.', schema: Type.Array(Webhook), headers: ['Link'] },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async list(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListPage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const page = await pageOf('whk', query, { request, reply }, (asked) =>
      this.webhooks.listOf(principal, inboxId, asked),
    )
    return page.map((webhook) => this.webhooks.show(webhook))
  }
}
