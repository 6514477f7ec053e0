import type { DecodedBatch } from '#libs/event-log/decode-batch.js'
import type { InboxEvent } from '#libs/inbox/events.js'
import { mintId } from '#libs/typeid/mint.js'
import { firstStepOf } from './inbox-projector.js'

const MIB = 1024 * 1024

function received(offset: number, size: number): DecodedBatch<InboxEvent>['events'][number] {
  return {
    offset,
    recorded: {
      id: mintId('evt'),
      time: new Date(),
      source: '/mayfly/smtp',
      accountId: mintId('acc'),
      environment: 'development',
      keyId: null,
      event: {
        type: 'MessageReceived',
        inboxId: mintId('inb'),
        messageId: mintId('msg'),
        receivedAt: new Date(),
        size,
        digest: '',
        sealed: Buffer.alloc(0),
      },
    },
  }
}

describe('a step of the views', () => {
  it('takes a whole batch of small mails', () => {
    const batch = { events: [received(3, 5_000), received(4, 5_000)], next: 5, outcome: 'done' } as const
    expect(firstStepOf({ ...batch, events: [...batch.events] })).toEqual(batch)
  })

  it('ends before more source than it may hold, and comes again for the rest', () => {
    const events = [received(3, 20 * MIB), received(5, 20 * MIB), received(6, 1)]
    const step = firstStepOf({ events, next: 7, outcome: 'done' })
    expect(step).toEqual({ events: events.slice(0, 1), next: 5, outcome: { seekTo: 5 } })
  })

  it('takes at least one mail, however large', () => {
    const events = [received(3, 200 * MIB), received(4, 1)]
    expect(firstStepOf({ events, next: 5, outcome: 'done' }).next).toBe(4)
  })
})
