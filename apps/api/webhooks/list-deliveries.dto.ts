import { IsIn, IsOptional } from 'class-validator'
import { DELIVERY_STATES, type Delivery } from '#libs/domain/webhook/delivery.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-parameters.js'
import { Says } from '../openapi/describe.js'

/** The query of GET /v1/webhooks/{id}/deliveries. */
export class ListDeliveries {
  @IsLimit({ most: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string

  @Says('Only those in this state.')
  @IsOptional()
  @IsIn(DELIVERY_STATES, { message: `state must be one of ${DELIVERY_STATES.join(', ')}` })
  state?: Delivery['state']
}
