import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { type Principal, Caller, RequireContent, RequireScope } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Describe, Tag } from '../openapi/describe.js'
import {
  ChangeWebhook,
  RegisterInboxWebhook,
  RegisterWebhook,
  RotateWebhookSecret,
} from './webhook-requests.dto.js'
import { Webhook, WebhookWithSecret } from './webhook-schemas.js'
import { READ_SCOPES, Webhooks } from './webhooks.service.js'

const ACCESS =
  "The webhook of an inbox requires the scopes of the inbox's messages, and its password if it has one. The webhook of an environment requires `admin`."

/** The webhooks of the key's environment, and each webhook by its id. */
@Controller('v1/webhooks')
@Tag('Webhooks')
@RequireContent()
export class WebhooksController {
  constructor(private readonly webhooks: Webhooks) {}

  @Post()
  @RequireScope('admin')
  @Describe({
    summary: 'Register a webhook for a whole environment',
    description:
      "For all inboxes of the key's environment, including later ones, except protected inboxes. An environment can have at " +
      'most 100 webhooks.',
    answer: {
      description: 'The webhook, with its secret.',
      schema: WebhookWithSecret,
      headers: ['Location'],
    },
    problems: ['quota-exceeded'],
  })
  async createWebhook(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: RegisterWebhook,
    @Reply() reply: FastifyReply,
  ) {
    return withLocation(reply, '/v1/webhooks', await this.webhooks.register(principal, null, body, minting))
  }

  @Get()
  @RequireScope('admin')
  @Describe({
    summary: 'List the webhooks of a whole environment',
    description: 'Newest first, without the webhooks of single inboxes.',
    answer: { description: 'A page of webhooks.', schema: Type.Array(Webhook), headers: ['Link'] },
  })
  async listWebhooks(@Caller() principal: Principal, @Query() query: ListPage, @Reply() reply: FastifyReply) {
    const { accountId, environment } = principal
    const page = await pageOf('whk', query, reply, (listQuery) =>
      this.webhooks.list({ accountId, environment }, listQuery),
    )
    return Promise.all(page.map((webhook) => this.webhooks.show(webhook)))
  }

  @Get(':webhookId')
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    summary: 'Read a webhook',
    description: `Also the webhook of an inbox that has ended. ${ACCESS}`,
    answer: { description: 'The webhook.', schema: Webhook },
  })
  async getWebhook(@Caller() principal: Principal, @Param('webhookId') webhookId: string) {
    return this.webhooks.show(await this.webhooks.find(principal, webhookId, READ_SCOPES))
  }

  @Patch(':webhookId')
  @RequireScope('inboxes', 'admin')
  @Describe({
    summary: 'Change, disable or enable a webhook',
    description: ACCESS,
    answer: { description: 'The webhook.', schema: Webhook },
  })
  changeWebhook(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Body() body: ChangeWebhook,
  ) {
    return this.webhooks.change(principal, webhookId, body)
  }

  @Delete(':webhookId')
  @RequireScope('inboxes', 'admin')
  @Describe({
    summary: 'Delete a webhook',
    description: `Nothing more is delivered, and the webhook is no longer found. ${ACCESS}`,
    answer: { description: 'The webhook before its deletion.', schema: Webhook },
  })
  deleteWebhook(@Caller() principal: Principal, @Param('webhookId') webhookId: string) {
    return this.webhooks.remove(principal, webhookId)
  }

  @Post(':webhookId/secret/rotate')
  @RequireScope('inboxes', 'admin')
  @Describe({
    summary: 'Rotate the secret of a webhook',
    description: `During the grace period, requests are signed with both secrets. ${ACCESS}`,
    answer: {
      description: 'The webhook, with its new secret.',
      schema: WebhookWithSecret,
      headers: ['Location'],
    },
  })
  async rotateWebhookSecret(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('webhookId') webhookId: string,
    @Body() body: RotateWebhookSecret,
    @Reply() reply: FastifyReply,
  ) {
    return withLocation(
      reply,
      '/v1/webhooks',
      await this.webhooks.rotate(principal, webhookId, body, minting),
    )
  }
}

/** Registers and lists the webhooks of one inbox, under both of its paths. Each webhook is then under /v1/webhooks. */
@Controller(['v1/inboxes/:inboxId/webhooks', 'v1/emails/:inboxId/webhooks'])
@Tag('Webhooks')
@RequireContent()
export class InboxWebhooksController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly webhooks: Webhooks,
  ) {}

  @Post()
  @RequireScope('inboxes')
  @Describe({
    summary: 'Register a webhook for one inbox',
    description: 'An inbox can have at most 20. A protected inbox requires its password.',
    answer: {
      description: 'The webhook, with its secret.',
      schema: WebhookWithSecret,
      headers: ['Location'],
    },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async createInboxWebhook(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('inboxId') inboxId: string,
    @Body() body: RegisterInboxWebhook,
    @Reply() reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const registered = await this.webhooks.register(principal, inbox.id, body, minting)
    return withLocation(reply, '/v1/webhooks', registered)
  }

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
    summary: "List an inbox's webhooks",
    description: 'Newest first, without the webhooks of its environment.',
    answer: { description: 'A page of webhooks.', schema: Type.Array(Webhook), headers: ['Link'] },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async listInboxWebhooks(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListPage,
    @Reply() reply: FastifyReply,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const page = await pageOf('whk', query, reply, (listQuery) =>
      this.webhooks.list({ inboxId: inbox.id }, listQuery),
    )
    return Promise.all(page.map((webhook) => this.webhooks.show(webhook)))
  }
}
