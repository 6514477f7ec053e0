import { Injectable } from '@nestjs/common'
import type { Static } from 'typebox'
import type { ListQuery } from '#libs/ports/read-model/queries.js'
import { isId, type ReplayId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { hasFailed } from '#libs/domain/webhook/delivery.js'
import type { ReplaySelection } from '#libs/domain/webhook/webhook-events.js'
import { isAsking, MAX_RUNNING_REPLAYS, stateOf, type Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Principal } from '../access/authenticator.js'
import type { Minting } from '../access/minting.js'
import { Changes } from '../changes.js'
import { Instance } from '../instance.js'
import { readMoment } from '../http/dto-values.js'
import { invalid, notFound, type Problem } from '../http/problems.js'
import { Views } from '../http/views.js'
import { Deliveries } from './deliveries.service.js'
import type { RequestReplay, ReplaySchema } from './replay-requests.dto.js'
import { WebhookPorts } from './webhooks.service.js'

/** Among so many of a webhook's last replays those that run are counted. */
const LAST_REPLAYS = 100

/** What webhooks are told once more. Who may ask is checked with the webhook. */
@Injectable()
export class Replays {
  constructor(
    private readonly views: Views,
    private readonly deliveries: Deliveries,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly ports: WebhookPorts,
  ) {}

  /** Resolves once the replay is durable and can be looked at. Throws invalid-request, and not-found for a delivery. */
  async request(
    webhook: Webhook,
    wanted: RequestReplay,
    principal: Principal,
    minting: Minting,
  ): Promise<Replay> {
    const { id: webhookId, accountId, environment } = webhook
    const replayId = minting.id('rpl')
    const requestedAt = this.instance.now()
    const selection = await this.selectionOf(webhook, wanted, requestedAt)
    const last = await this.list(webhookId, { order: 'desc', after: null, limit: LAST_REPLAYS })
    // One that is there already was asked for by this very request, which is being repeated.
    const others = last.filter((replay) => isAsking(replay) && replay.id !== replayId)
    if (others.length >= MAX_RUNNING_REPLAYS) {
      const detail = `a webhook may have ${MAX_RUNNING_REPLAYS} replays running: let one end, or cancel one`
      throw invalid({ detail, pointer: '' })
    }
    const facts = { webhookId, replayId, accountId, environment, selection, requestedAt }
    await this.changes.record([{ type: 'ReplayRequested', ...facts }], principal)
    return this.find(webhook, replayId)
  }

  /** Throws not-found, and catching-up if it may yet be there. */
  async find({ id: webhookId }: Webhook, id: string): Promise<Replay> {
    const find = (replayId: ReplayId) => () => this.ports.replays.replay({ webhookId, replayId })
    const replay = isId('rpl', id) ? await this.views.find(webhookId, find(id)) : null
    if (replay === null) throw noReplay(id)
    return replay
  }

  /** Throws catching-up if some may be missing. */
  list(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]> {
    return this.views.readComplete(webhookId, () => this.ports.replays.listReplays(webhookId, query))
  }

  /** Resolves once it asks for nothing more here; one that is through stays so. Throws as `find` does. */
  async cancel(webhook: Webhook, id: string, principal: Principal): Promise<Replay> {
    const replay = await this.find(webhook, id)
    if (stateOf(replay) !== 'running') return replay
    const { webhookId, id: replayId } = replay
    const cancelledAt = this.instance.now()
    await this.changes.record([{ type: 'ReplayCancelled', webhookId, replayId, cancelledAt }], principal)
    return this.find(webhook, replayId)
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
    const [first, end] = [readMoment(from), readMoment(to)]
    if (first >= end) throw invalid({ detail: 'from must be before to', pointer: '/from' })
    // What comes from now on is told as it happens.
    return { kind: 'range', from: first, to: end > now ? now : end, onlyFailed }
  }
}

export function replayJson(replay: Replay): Static<typeof ReplaySchema> {
  const { id, webhookId, requested, done, requestedAt } = replay
  return {
    id,
    webhook_id: webhookId,
    state: stateOf(replay),
    requested,
    done,
    created_at: requestedAt.toISOString(),
  }
}

function noReplay(id: string): Problem {
  return notFound(`There is no replay ${id.slice(0, 60)} of this webhook.`)
}
