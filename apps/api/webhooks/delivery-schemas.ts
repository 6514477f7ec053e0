import Type from 'typebox'
import { DELIVERY_STATES, type Delivery } from '#libs/domain/webhook/delivery.js'
import {
  ABANDONED_FOR,
  type DeliveryAbandoned,
  type Notification,
} from '#libs/domain/webhook/webhook-events.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { Count, IdOf, OrNull, Time } from '../openapi/describe.js'

const Attempt = Type.Object(
  {
    time: Time('When it began.'),
    status: OrNull(
      Type.Integer({ minimum: 100, maximum: 999 }),
      'What the endpoint answered; null where it did not.',
    ),
    latency_ms: Count('From its beginning to the answer, or the failure.'),
    answer: OrNull(
      Type.String(),
      'The beginning of the answer, at most 1 kB, read as UTF-8; null where there was none, of a sample or a redirect, and where the inbox has ended.',
    ),
    error: OrNull(Type.String(), 'Why it failed; null where it succeeded.'),
  },
  { $id: 'Attempt', description: 'One POST to an endpoint.' },
)

const TYPES: Notification['type'][] = [...WEBHOOK_EVENT_TYPES, 'sample']

export const DeliverySchema = Type.Object(
  {
    id: IdOf('dlv', 'Stays with it.'),
    webhook_id: IdOf('whk', 'To which webhook.'),
    event: Type.Unsafe<Notification['type']>({
      type: 'string',
      enum: TYPES,
      description: 'The event that is delivered.',
    }),
    inbox_id: OrNull(IdOf('inb', ''), 'Of which inbox; null of a sample.'),
    message_id: OrNull(IdOf('msg', ''), 'Of which message; null where it is of none.'),
    replay_id: OrNull(IdOf('rpl', ''), 'The replay that it belongs to; null if it is not part of one.'),
    state: Type.Unsafe<Delivery['state']>({
      type: 'string',
      enum: DELIVERY_STATES,
      description: '`failed` if the last attempt failed; `abandoned` if there is nothing left to deliver.',
    }),
    abandoned_reason: OrNull(
      Type.Unsafe<DeliveryAbandoned['reason']>({ type: 'string', enum: ABANDONED_FOR }),
      'Why it was abandoned.',
    ),
    created_at: Time('When it was asked for.'),
    next_attempt_at: OrNull(Time(''), 'When the next attempt is due; null where there is none.'),
    attempts: Type.Array(Attempt, { description: 'In the order in which they were made.' }),
  },
  {
    $id: 'Delivery',
    description: 'An event for a webhook, and the attempts to deliver it.',
    examples: [
      {
        id: 'dlv_01jd6b90czf2jb8z0w6s8p1q3r',
        webhook_id: 'whk_01jd6b2k8nf3gq6r9t2w5y8z1c',
        event: 'message.received',
        inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        message_id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
        replay_id: null,
        state: 'succeeded',
        abandoned_reason: null,
        created_at: '2026-11-21T09:30:02.431Z',
        next_attempt_at: null,
        attempts: [
          { time: '2026-11-21T09:30:02.446Z', status: 204, latency_ms: 12, answer: null, error: null },
        ],
      },
    ],
  },
)
