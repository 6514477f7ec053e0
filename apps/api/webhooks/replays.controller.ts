import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Principal } from '../access/authenticator.js'
import { Mint, type Minting } from '../access/minting.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { NoParameters } from '../http/dto-values.js'
import { Describe } from '../openapi/describe.js'
import { RequestReplay, ReplaySchema } from './replay-requests.dto.js'
import { replayJson, Replays } from './replays.service.js'
import { CHANGING, LOOKING, Webhooks } from './webhooks.service.js'

/** What a webhook is told once more. */
@Controller('v1/webhooks/:webhookId/replays')
export class ReplaysController {
  constructor(
    private readonly webhooks: Webhooks,
    private readonly replays: Replays,
  ) {}

  @Post()
  @HttpCode(202)
  @NeedsScope('inboxes', 'admin')
  @Describe({
    id: 'createReplay',
    tag: 'Webhooks',
    summary: 'Tell a webhook once more',
    description:
      'What happened in a range of time, also before there was the webhook, as long as the inbox is there; or single ' +
      'deliveries. Each comes with the `webhook-id` that it had the first time, at a bounded rate beside what ' +
      'happens meanwhile. A disabled webhook is told once it is enabled. At most 5 of a webhook run at once.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The replay, which is under way.', schema: ReplaySchema, headers: ['Location'] },
  })
  async request(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('webhookId') webhookId: string,
    @Body() body: RequestReplay,
    @Query() _query: NoParameters,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, CHANGING)
    const replay = await this.replays.request(webhook, body, principal, minting)
    void reply.header('location', `/v1/webhooks/${webhook.id}/replays/${replay.id}`)
    return replayJson(replay)
  }

  @Get()
  @NeedsScope('inboxes', 'read', 'admin')
  @Describe({
    id: 'listReplays',
    tag: 'Webhooks',
    summary: "List a webhook's replays",
    description:
      'Newest first. The one that tells a webhook registered with `start_from` what was there before is among them. ' +
      'They are kept for 30 days.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'A page of them.', schema: Type.Array(ReplaySchema), headers: ['Link'] },
  })
  async list(
    @Caller() principal: Principal,
    @Param('webhookId') id: string,
    @Query() query: ListPage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { id: webhookId } = await this.webhooks.find(principal, id, LOOKING)
    const page = await pageOf('rpl', query, { request, reply }, (asked) =>
      this.replays.list(webhookId, asked),
    )
    return page.map(replayJson)
  }

  @Get(':replayId')
  @NeedsScope('inboxes', 'read', 'admin')
  @Describe({
    id: 'getReplay',
    tag: 'Webhooks',
    summary: 'Read a replay',
    description: 'How far it has come.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The replay.', schema: ReplaySchema },
  })
  async get(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Param('replayId') replayId: string,
    @Query() _query: NoParameters,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, LOOKING)
    return replayJson(await this.replays.find(webhook, replayId))
  }

  @Delete(':replayId')
  @NeedsScope('inboxes', 'admin')
  @Describe({
    id: 'cancelReplay',
    tag: 'Webhooks',
    summary: 'Cancel a replay',
    description:
      'It asks for nothing more, and what it has asked for is abandoned. One that is through stays so.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The replay.', schema: ReplaySchema },
  })
  async cancel(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Param('replayId') replayId: string,
    @Query() _query: NoParameters,
    @Body() _body: NoParameters,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, CHANGING)
    return replayJson(await this.replays.cancel(webhook, replayId, principal))
  }
}
