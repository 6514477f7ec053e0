import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { type Principal, Caller, RequireScope } from '../access/authenticator.js'
import { withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/idempotency.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Describe, Tag } from '../openapi/describe.js'
import { ChangeWebhook, RegisterWebhook, RotateWebhookSecret } from './webhook-requests.dto.js'
import { Webhook, WebhookWithSecret } from './webhook-schemas.js'
import { LOOKING, Webhooks } from './webhooks.service.js'

const WHO_MAY =
  "One of an inbox requires the scopes of its messages, and its password if it has one; an environment's requires `admin`."

/** Webhooks for all inboxes of the key's environment, and each webhook by its id. */
@Controller('v1/webhooks')
@Tag('Webhooks')
export class WebhooksController {
  constructor(private readonly webhooks: Webhooks) {}

  @Post()
  @RequireScope('admin')
  @Describe({
    id: 'createWebhook',
    summary: 'Register a webhook for a whole environment',
    description:
      "For all inboxes of the key's environment, also those to come, but not for those with a password. At most 100 " +
      'of them.',
    answer: {
      description: 'The webhook, with its secret.',
      schema: WebhookWithSecret,
      headers: ['Location'],
    },
  })
  async register(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: RegisterWebhook,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const registered = await this.webhooks.register(principal, null, body, minting)
    return withLocation(reply, '/v1/webhooks', this.webhooks.showNew(registered))
  }

  @Get()
  @RequireScope('admin')
  @Describe({
    id: 'listWebhooks',
    summary: 'List the webhooks of a whole environment',
    description: 'Newest first; those of single inboxes are listed with their inbox.',
    answer: { description: 'A page of them.', schema: Type.Array(Webhook), headers: ['Link'] },
  })
  async list(
    @Caller() principal: Principal,
    @Query() query: ListPage,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { accountId, environment } = principal
    const page = await pageOf('whk', query, reply, (listQuery) =>
      this.webhooks.list({ accountId, environment }, listQuery),
    )
    return page.map((webhook) => this.webhooks.show(webhook))
  }

  @Get(':webhookId')
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    id: 'getWebhook',
    summary: 'Read a webhook',
    description: `Also of an inbox that has ended. ${WHO_MAY}`,
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The webhook.', schema: Webhook },
  })
  async get(@Caller() principal: Principal, @Param('webhookId') webhookId: string) {
    return this.webhooks.show(await this.webhooks.find(principal, webhookId, LOOKING))
  }

  @Patch(':webhookId')
  @RequireScope('inboxes', 'admin')
  @Describe({
    id: 'changeWebhook',
    summary: 'Change, disable or enable a webhook',
    description: WHO_MAY,
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The webhook.', schema: Webhook },
  })
  async change(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Body() body: ChangeWebhook,
  ) {
    return this.webhooks.show(await this.webhooks.change(principal, webhookId, body))
  }

  @Delete(':webhookId')
  @RequireScope('inboxes', 'admin')
  @Describe({
    id: 'deleteWebhook',
    summary: 'Remove a webhook',
    description: `From then on it is not found. ${WHO_MAY}`,
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The webhook as it was.', schema: Webhook },
  })
  async remove(@Caller() principal: Principal, @Param('webhookId') webhookId: string) {
    return this.webhooks.show(await this.webhooks.remove(principal, webhookId))
  }

  @Post(':webhookId/secret/rotate')
  @RequireScope('inboxes', 'admin')
  @Describe({
    id: 'rotateWebhookSecret',
    summary: 'Give a webhook another secret',
    description: `During the grace it signs with both. ${WHO_MAY}`,
    takes: ['Mayfly-Inbox-Password'],
    answer: {
      description: 'The webhook, with its new secret.',
      schema: WebhookWithSecret,
      headers: ['Location'],
    },
  })
  async rotate(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('webhookId') webhookId: string,
    @Body() body: RotateWebhookSecret,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const rotated = await this.webhooks.rotate(principal, webhookId, body, minting)
    return withLocation(reply, '/v1/webhooks', this.webhooks.showNew(rotated))
  }
}

/** The webhooks of one inbox, under both families of paths. Each one is then found under /v1/webhooks. */
@Controller(['v1/inboxes/:inboxId/webhooks', 'v1/emails/:inboxId/webhooks'])
@Tag('Webhooks')
export class InboxWebhooksController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly webhooks: Webhooks,
  ) {}

  @Post()
  @RequireScope('inboxes')
  @Describe({
    id: 'createInboxWebhook',
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
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const registered = await this.webhooks.register(principal, inbox.id, body, minting)
    return withLocation(reply, '/v1/webhooks', this.webhooks.showNew(registered))
  }

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
    id: 'listInboxWebhooks',
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
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const page = await pageOf('whk', query, reply, (listQuery) =>
      this.webhooks.list({ inboxId: inbox.id }, listQuery),
    )
    return page.map((webhook) => this.webhooks.show(webhook))
  }
}
