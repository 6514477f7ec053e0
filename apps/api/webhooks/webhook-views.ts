import { Injectable } from '@nestjs/common'
import { partitionOf } from '#libs/ports/event-log/partitioner.js'
import { isCatchingUp } from '#libs/ports/read-model/queries.js'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { unavailable } from '../http/problems.js'
import { Views } from '../http/views.js'
import { WebhooksContext } from './webhooks.service.js'

const TOPIC = 'webhook-events'

/** Whether the views of webhook-events can be believed. */
@Injectable()
export class WebhookViews {
  constructor(
    private readonly views: Views,
    private readonly context: WebhooksContext,
  ) {}

  /** What the views have of a webhook; throws catching-up where they have nothing, and it may yet be there. */
  async look<Row>(webhookId: WebhookId, find: () => Promise<Row | null>): Promise<Row | null> {
    const found = await find()
    if (found !== null) return found
    await this.mustKnow(webhookId)
    return find()
  }

  /** Throws catching-up where the views may lack something of a webhook. */
  async mustKnow(webhookId: WebhookId): Promise<void> {
    const partition = partitionOf(webhookId, this.context.log.partitionCount(TOPIC))
    if (!isCatchingUp(await this.views.inboxes.progress({ topic: TOPIC, partition }))) return
    throw unavailable('catching-up', 'What became of deliveries can not be told yet.')
  }
}
