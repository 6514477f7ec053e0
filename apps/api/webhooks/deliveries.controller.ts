import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common'
import { IsIn, IsOptional } from 'class-validator'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { type Delivery, DELIVERY_STATES } from '#libs/domain/webhook/delivery.js'
import { type Principal, Caller, RequireContent, RequireScope } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { ListPage, offsetPageOf } from '../http/list-pages.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { Deliveries, DeliverySchema } from './deliveries.service.js'
import { WRITE_SCOPES, READ_SCOPES, Webhooks } from './webhooks.service.js'

/** The query of GET /v1/webhooks/{id}/deliveries. */
class ListDeliveries extends ListPage {
  @DescribeProperty('Only deliveries in this state.')
  @IsOptional()
  @IsIn(DELIVERY_STATES, { message: `state must be one of ${DELIVERY_STATES.join(', ')}` })
  state?: Delivery['state']
}

/** The deliveries of a webhook, and the sample that tests it. */
@Controller('v1/webhooks/:webhookId')
@Tag('Webhooks')
@RequireContent()
export class DeliveriesController {
  constructor(
    private readonly webhooks: Webhooks,
    private readonly deliveries: Deliveries,
  ) {}

  @Post('test')
  @HttpCode(202)
  @RequireScope('inboxes', 'admin')
  @Describe({
    summary: 'Send a sample to a webhook',
    description:
      'A sample mail, sent once, even if the webhook is disabled. Read its delivery by id for the result.',
    answer: {
      description: 'The delivery, in progress.',
      schema: DeliverySchema,
      headers: ['Location'],
    },
  })
  async testWebhook(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('webhookId') webhookId: string,
    @Reply() reply: FastifyReply,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, WRITE_SCOPES)
    const sample = await this.deliveries.sendSample(webhook, principal, minting)
    const json = await this.deliveries.json(sample)
    return withLocation(reply, `/v1/webhooks/${webhook.id}/deliveries`, json)
  }

  @Get('deliveries')
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    summary: "List a webhook's deliveries",
    description: 'Newest first by default, with all attempts. Deliveries are kept for 30 days.',
    answer: { description: 'A page of deliveries.', schema: Type.Array(DeliverySchema), headers: ['Link'] },
  })
  async listDeliveries(
    @Caller() principal: Principal,
    @Param('webhookId') id: string,
    @Query() query: ListDeliveries,
    @Reply() reply: FastifyReply,
  ) {
    const { state = null } = query
    const { id: webhookId } = await this.webhooks.find(principal, id, READ_SCOPES)
    const page = await offsetPageOf(webhookId, query, reply, (range) =>
      this.deliveries.list({ webhookId, state, ...range }),
    )
    return this.deliveries.listJson(page.map(({ delivery }) => delivery))
  }

  @Get('deliveries/:deliveryId')
  @RequireScope('inboxes', 'read', 'admin')
  @Describe({
    summary: 'Read a delivery',
    description: 'With all attempts.',
    answer: { description: 'The delivery.', schema: DeliverySchema },
  })
  async getDelivery(
    @Caller() principal: Principal,
    @Param('webhookId') webhookId: string,
    @Param('deliveryId') deliveryId: string,
  ) {
    const webhook = await this.webhooks.find(principal, webhookId, READ_SCOPES)
    const delivery = await this.deliveries.find(webhook, deliveryId)
    return this.deliveries.json(delivery)
  }
}
