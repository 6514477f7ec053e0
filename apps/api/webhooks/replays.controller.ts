import { Body, Controller, Delete, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common'
import type { Engine } from '#libs/engines/engine.js'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { isId, type ReplayId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { hasFailed } from '#libs/domain/webhook/delivery.js'
import { hasMoreToRequest, MAX_RUNNING_REPLAYS, stateOf, type Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { ReplaySelection } from '#libs/domain/webhook/events.js'
import type { ListQuery } from '#libs/ports/read-model/lists.js'
import { type Principal, Caller, RequireContent, RequireScope } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { readTime } from '../http/rules.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { invalid, notFound } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Deliveries } from './deliveries.service.js'
import { replayJson, ReplaySchema, RequestReplay } from './replay-requests.dto.js'
import { WRITE_SCOPES, READ_SCOPES, Webhooks } from './webhooks.service.js'

/** The newest replays of a webhook, among which the running ones are counted. */
const LAST_REPLAYS = 100

/** Replays of a webhook's deliveries. */
@Controller('v1/webhooks/:webhookId/replays')
@Tag('Webhooks')
@RequireContent()
export class ReplaysController {
  constructor(
    private readonly webhooks: Webhooks,
    private readonly deliveries: Deliveries,
    private readonly views: Views,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'replays'>,
  ) {}

  @Post()
  @HttpCode(202)
  @RequireScope('inboxes', 'admin')
  @Describe({
    summary: 'Replay deliveries to a webhook',
    description:
      'Replays the events in a time range, also from before the webhook was registered, if their inbox still exists; or ' +
      'single deliveries. Each event has the `webhook-id` of its first delivery. Replays have a limited rate and do not ' +
      'delay new events. Replays to a disabled webhook are sent when it is enabled. A webhook can have at most 5 running ' +
      'replays.',
    answer: { description: 'The replay, in progress.', schema: ReplaySchema, headers: ['Location'] },
  })
  async createReplay(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('webhookId') id: string,
    @Body() body: RequestReplay,
    @Reply() reply: FastifyReply,
  ) {
    const webhook = await this.webhooks.find(principal, id, WRITE_SCOPES)
    const { id: webhookId, accountId, environment } = webhook
    const replayId = minting.id('rpl')
    const requestedAt = this.instance.now()
    const selection = await this.selectionOf(webhook, body, requestedAt)
    const last = await this.listOf(webhookId, { order: 'desc', after: null, limit: LAST_REPLAYS })
    // If the request is repeated, its own replay may already be running.
    const others = last.filter((replay) => hasMoreToRequest(replay) && replay.id !== replayId)
    if (others.length >= MAX_RUNNING_REPLAYS) {
      const detail = `a webhook may have ${MAX_RUNNING_REPLAYS} running replays: wait for one to end, or cancel one`
      throw invalid({ detail, pointer: '' })
    }
    const facts = { webhookId, replayId, accountId, environment, selection, requestedAt }
    await this.recorder.record([{ type: 'ReplayRequested', ...facts }], principal)
    const replay = await this.find(webhookId, replayId)
    return withLocation(reply, `/v1/webhooks/${webhookId}/replays`, replayJson(replay))
  }

  @Get()
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    summary: "List a webhook's replays",
    description:
      'Newest first. A webhook that was registered with `start_from` has a replay for the earlier events. Replays are kept ' +
      'for 30 days.',
    answer: { description: 'A page of replays.', schema: Type.Array(ReplaySchema), headers: ['Link'] },
  })
  async listReplays(
    @Caller() principal: Principal,
    @Param('webhookId') id: string,
    @Query() query: ListPage,
    @Reply() reply: FastifyReply,
  ) {
    const { id: webhookId } = await this.webhooks.find(principal, id, READ_SCOPES)
    const page = await pageOf('rpl', query, reply, (listQuery) => this.listOf(webhookId, listQuery))
    return page.map(replayJson)
  }

  @Get(':replayId')
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    summary: 'Read a replay',
    description: 'With its progress.',
    answer: { description: 'The replay.', schema: ReplaySchema },
  })
  async getReplay(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Param('replayId') replayId: string,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, READ_SCOPES)
    return replayJson(await this.find(webhook.id, replayId))
  }

  @Delete(':replayId')
  @RequireScope('inboxes', 'admin')
  @Describe({
    summary: 'Cancel a replay',
    description:
      'The replay requests no more deliveries, and its unfinished deliveries are abandoned. A completed replay does not change.',
    answer: { description: 'The replay.', schema: ReplaySchema },
  })
  async cancelReplay(
    @Caller() principal: Principal,
    @Param('webhookId') id: string,
    @Param('replayId') requestedId: string,
  ) {
    const { id: webhookId } = await this.webhooks.find(principal, id, WRITE_SCOPES)
    const replay = await this.find(webhookId, requestedId)
    if (stateOf(replay) !== 'running') return replayJson(replay)
    const { id: replayId } = replay
    const cancelledAt = this.instance.now()
    await this.recorder.record([{ type: 'ReplayCancelled', webhookId, replayId, cancelledAt }], principal)
    return replayJson(await this.find(webhookId, replayId))
  }

  /** Throws not-found, and ViewsCatchingUpError if the replay may still appear in the views. */
  private async find(webhookId: WebhookId, id: string): Promise<Replay> {
    const { replays } = this.engine
    const replay = isId('rpl', id)
      ? await this.views.find(webhookId, () => replays.replay({ webhookId, replayId: id }))
      : null
    if (replay === null) throw notFound(`There is no replay ${id.slice(0, 60)} of this webhook.`)
    return replay
  }

  /** Throws ViewsCatchingUpError if replays may be missing. */
  private listOf(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]> {
    return this.views.readComplete(webhookId, () => this.engine.replays.listReplays(webhookId, query))
  }

  private async selectionOf(
    webhook: Webhook,
    { from, to, delivery_ids: ids, only_failed: onlyFailed }: RequestReplay,
    now: Date,
  ): Promise<ReplaySelection> {
    if (ids !== undefined && from === undefined && to === undefined) {
      const found = await Promise.all(ids.map((id) => this.deliveries.find(webhook, id)))
      const selected = onlyFailed ? found.filter(hasFailed) : found
      return { kind: 'deliveries', deliveryIds: selected.map(({ id }) => id) }
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
