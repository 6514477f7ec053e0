import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { isId, type ReplayId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { hasFailed } from '#libs/domain/webhook/delivery.js'
import { isAsking, MAX_RUNNING_REPLAYS, stateOf, type Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { ReplaySelection } from '#libs/domain/webhook/webhook-events.js'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { type Principal, Caller, RequireScope } from '../access/authenticator.js'
import { withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/idempotency.js'
import { Views, Changes } from '../http/views.js'
import { readTime } from '../http/validation.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { invalid, notFound } from '../http/problems.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Deliveries } from './deliveries.service.js'
import { replayJson, ReplaySchema, RequestReplay } from './replay-requests.dto.js'
import { CHANGING, LOOKING, WebhookPorts, Webhooks } from './webhooks.service.js'

/** The newest replays of a webhook, among which the running ones are counted. */
const LAST_REPLAYS = 100

/** Replays of a webhook's deliveries. */
@Controller('v1/webhooks/:webhookId/replays')
@Tag('Webhooks')
export class ReplaysController {
  constructor(
    private readonly webhooks: Webhooks,
    private readonly deliveries: Deliveries,
    private readonly views: Views,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly ports: WebhookPorts,
  ) {}

  @Post()
  @HttpCode(202)
  @RequireScope('inboxes', 'admin')
  @Describe({
    id: 'createReplay',
    summary: 'Replay deliveries to a webhook',
    description:
      'The events of a range of time, also from before the webhook was registered, as long as the inbox exists; or ' +
      'single deliveries. Each has the `webhook-id` of the first delivery. Replays have a limited rate, beside new ' +
      'events. To a disabled webhook they are sent once it is enabled. A webhook can have at most 5 running replays.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The replay, in progress.', schema: ReplaySchema, headers: ['Location'] },
  })
  async request(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('webhookId') id: string,
    @Body() body: RequestReplay,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const webhook = await this.webhooks.find(principal, id, CHANGING)
    const { id: webhookId, accountId, environment } = webhook
    const replayId = minting.id('rpl')
    const requestedAt = this.instance.now()
    const selection = await this.selectionOf(webhook, body, requestedAt)
    const last = await this.listOf(webhookId, { order: 'desc', after: null, limit: LAST_REPLAYS })
    // If the request is repeated, its own replay may already be running.
    const others = last.filter((replay) => isAsking(replay) && replay.id !== replayId)
    if (others.length >= MAX_RUNNING_REPLAYS) {
      const detail = `a webhook may have ${MAX_RUNNING_REPLAYS} replays running: let one end, or cancel one`
      throw invalid({ detail, pointer: '' })
    }
    const facts = { webhookId, replayId, accountId, environment, selection, requestedAt }
    await this.changes.record([{ type: 'ReplayRequested', ...facts }], principal)
    const replay = await this.find(webhookId, replayId)
    return withLocation(reply, `/v1/webhooks/${webhookId}/replays`, replayJson(replay))
  }

  @Get()
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    id: 'listReplays',
    summary: "List a webhook's replays",
    description:
      'Newest first, with the one of a webhook that was registered with `start_from`, which delivers earlier events. ' +
      'They are kept for 30 days.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'A page of them.', schema: Type.Array(ReplaySchema), headers: ['Link'] },
  })
  async list(
    @Caller() principal: Principal,
    @Param('webhookId') id: string,
    @Query() query: ListPage,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { id: webhookId } = await this.webhooks.find(principal, id, LOOKING)
    const page = await pageOf('rpl', query, reply, (listQuery) => this.listOf(webhookId, listQuery))
    return page.map(replayJson)
  }

  @Get(':replayId')
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    id: 'getReplay',
    summary: 'Read a replay',
    description: 'With its progress.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The replay.', schema: ReplaySchema },
  })
  async get(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Param('replayId') replayId: string,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, LOOKING)
    return replayJson(await this.find(webhook.id, replayId))
  }

  @Delete(':replayId')
  @RequireScope('inboxes', 'admin')
  @Describe({
    id: 'cancelReplay',
    summary: 'Cancel a replay',
    description:
      'It requests no more deliveries, and those that it has requested are abandoned. A completed one does not change.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The replay.', schema: ReplaySchema },
  })
  async cancel(
    @Caller() principal: Principal,
    @Param('webhookId') id: string,
    @Param('replayId') askedId: string,
  ) {
    const { id: webhookId } = await this.webhooks.find(principal, id, CHANGING)
    const replay = await this.find(webhookId, askedId)
    if (stateOf(replay) !== 'running') return replayJson(replay)
    const { id: replayId } = replay
    const cancelledAt = this.instance.now()
    await this.changes.record([{ type: 'ReplayCancelled', webhookId, replayId, cancelledAt }], principal)
    return replayJson(await this.find(webhookId, replayId))
  }

  /** Throws not-found, and catching-up if it may still appear in the views. */
  private async find(webhookId: WebhookId, id: string): Promise<Replay> {
    const { replays } = this.ports
    const replay = isId('rpl', id)
      ? await this.views.find(webhookId, () => replays.replay({ webhookId, replayId: id }))
      : null
    if (replay === null) throw notFound(`There is no replay ${id.slice(0, 60)} of this webhook.`)
    return replay
  }

  /** Throws catching-up if some may be missing. */
  private listOf(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]> {
    return this.views.readComplete(webhookId, () => this.ports.replays.listReplays(webhookId, query))
  }

  private async selectionOf(
    webhook: Webhook,
    { from, to, delivery_ids: ids, only_failed: onlyFailed }: RequestReplay,
    now: Date,
  ): Promise<ReplaySelection> {
    if (ids !== undefined && from === undefined && to === undefined) {
      const found = await Promise.all(ids.map((id) => this.deliveries.find(webhook, id)))
      const some = onlyFailed ? found.filter(hasFailed) : found
      return { kind: 'deliveries', deliveryIds: some.map(({ id }) => id) }
    }
    if (ids !== undefined || from === undefined || to === undefined) {
      throw invalid({ detail: 'either from and to, or delivery_ids must be given', pointer: '' })
    }
    const [first, end] = [readTime(from), readTime(to)]
    if (first >= end) throw invalid({ detail: 'from must be before to', pointer: '/from' })
    // Events from now on are delivered as they happen.
    return { kind: 'range', from: first, to: end > now ? now : end, onlyFailed }
  }
}
