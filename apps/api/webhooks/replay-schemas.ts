import Type from 'typebox'
import { REPLAY_STATES } from '#libs/domain/webhook/replay.js'
import { Count, IdOf, Time } from '../openapi/describe.js'

export const ReplaySchema = Type.Object(
  {
    id: IdOf('rpl', 'Stays with it.'),
    webhook_id: IdOf('whk', 'To which webhook.'),
    state: Type.Unsafe<(typeof REPLAY_STATES)[number]>({
      type: 'string',
      enum: REPLAY_STATES,
      description: '`completed` once all deliveries are requested and finished.',
    }),
    requested: Count('Deliveries requested so far.'),
    done: Count('Deliveries that are finished: delivered, failed without another attempt, or abandoned.'),
    created_at: Time('When it was asked for.'),
  },
  {
    $id: 'Replay',
    description: 'A repeat of deliveries to a webhook.',
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
)
