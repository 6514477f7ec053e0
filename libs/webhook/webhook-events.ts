import type { DeliveryEvent } from './delivery-events.js'
import type { ReplayEvent } from './replay-events.js'

/** What stands on webhook-events. Registrations are not there: they are events of their account. */
export type WebhookEvent = DeliveryEvent | ReplayEvent
