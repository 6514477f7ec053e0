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
        inbox: null,
      },
    },
  }
}

function batchOf(events: DecodedBatch<InboxEvent>['events'], next: number): DecodedBatch<InboxEvent> {
  return { events, undecodable: [], next, outcome: 'done' }
}

describe('a step of the views', () => {
  it('takes a whole batch of small mails', () => {
    const batch = batchOf([received(3, 5_000), received(4, 5_000)], 5)
    expect(firstStepOf(batch)).toEqual(batch)
  })

  it('ends before more source than it may hold, and comes again for the rest', () => {
    const events = [received(3, 20 * MIB), received(5, 20 * MIB)]
    const [before, behind] = [4, 6].map((offset) => ({
      record: { offset, key: '', headers: {}, value: Buffer.alloc(0) },
      reason: 'poison',
    }))
    const undecodable = [before, behind].filter((each) => each !== undefined)
    const step = firstStepOf({ ...batchOf(events, 7), undecodable })
    expect(step).toEqual({
      events: events.slice(0, 1),
      undecodable: [before],
      next: 5,
      outcome: { seekTo: 5 },
    })
  })

  it('takes at least one mail, however large', () => {
    const events = [received(3, 200 * MIB), received(4, 1)]
    expect(firstStepOf(batchOf(events, 5)).next).toBe(4)
  })
})
