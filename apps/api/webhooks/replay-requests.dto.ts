import { IsBoolean, Matches } from 'class-validator'
import { named } from '#libs/domain/event-sourcing/declare.js'
import { idPattern } from '#libs/domain/ids/typeid.js'
import { REPLAY_STATES, stateOf, type Replay } from '#libs/domain/webhook/replay.js'
import { Count, IdOf, OneOf, resource, time } from '#libs/runtime/resource.js'
import { IsTimeLimit } from '../http/list-pages.js'
import { IfGiven, IsSetOf } from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

/** The maximum number of deliveries on a page of the list. */
const MAX_DELIVERIES = 100
const IDS = `delivery_ids must be an array of 1 to ${MAX_DELIVERIES} ids of deliveries, each once`

/** The body of POST /v1/webhooks/{id}/replays: a time range, or deliveries. */
@DescribeBody({
  description: 'Which events to send again.',
  example: { from: '2026-11-21T08:00:00Z', to: '2026-11-21T20:00:00Z', only_failed: true },
  variants: {
    ReplayOfRange: { description: 'All events in a time range.', required: ['from', 'to'] },
    ReplayOfDeliveries: { description: 'The events of single deliveries.', required: ['delivery_ids'] },
  },
})
export class RequestReplay {
  @IsTimeLimit('The start of the range (RFC 3339). Requires `to`.')
  from?: string

  @IsTimeLimit('The end of the range, exclusive; at most now.')
  to?: string

  @DescribeProperty('Deliveries of the webhook, instead of a time range. Samples are skipped.', {
    examples: [['dlv_01jd6b90czf2jb8z0w6s8p1q3r']],
  })
  @IfGiven()
  @IsSetOf((options) => Matches(new RegExp(idPattern('dlv')), options), MAX_DELIVERIES, IDS)
  delivery_ids?: string[]

  @DescribeProperty(
    'Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a failed one, or it was abandoned because the webhook was disabled or the replay was cancelled.',
  )
  @IsBoolean({ message: 'only_failed must be true or false' })
  only_failed: boolean = false
}

export const { schema: ReplaySchema, json: replayJson } = resource(
  'Replay',
  {
    description: 'Events that are delivered to a webhook again.',
    examples: [
      {
        id: 'rpl_01jd6b9t3mf2ka7xw5v1n8q4se',
        webhook_id: 'whk_01jd6b2k8nf3gq6r9t2w5y8z1c',
        state: 'running',
        requested: 400,
        done: 360,
        created_at: '2026-11-21T09:31:12.004Z',
      },
    ],
  },
  {
    id: IdOf('rpl', 'The id of the replay.'),
    webhookId: IdOf('whk', 'The webhook.'),
    state: OneOf(REPLAY_STATES, '`completed` once all deliveries are requested and finished.'),
    requested: Count('Deliveries requested so far.'),
    done: Count('Deliveries that are finished: delivered, failed without another attempt, or abandoned.'),
    requestedAt: named('created_at', time('When it was requested.')),
  },
  (replay: Replay) => ({ ...replay, state: stateOf(replay) }),
)
