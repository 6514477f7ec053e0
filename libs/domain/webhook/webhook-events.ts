import type { EventOf } from '#libs/domain/events/declare.js'
import { DELIVERY_EVENTS } from './delivery-events.js'
import { REPLAY_EVENTS } from './replay-events.js'

/** What is on webhook-events. Registrations are not there: they are events of their account. */
export const WEBHOOK_EVENTS = { ...DELIVERY_EVENTS, ...REPLAY_EVENTS }
export type WebhookEvent = EventOf<typeof WEBHOOK_EVENTS>
