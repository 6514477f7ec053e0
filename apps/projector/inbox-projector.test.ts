import type { DecodedBatch } from '#libs/ports/event-log/batch-decoding.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { created, expired } from '#libs/domain/inbox/inbox.test-support.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { stepsOf } from './inbox-projector.js'

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
        duplicateOf: null,
        fingerprint: null,
        inbox: null,
      },
    },
  }
}

function batchOf(events: DecodedBatch<InboxEvent>['events'], next: number): DecodedBatch<InboxEvent> {
  return { events, undecodable: [], next, outcome: 'done' }
}

function eventAt(offset: number, event: InboxEvent): DecodedBatch<InboxEvent>['events'][number] {
  return { offset, recorded: { ...received(offset, 0).recorded, event } }
}

describe('the steps of the views', () => {
  it('hold a whole batch of small mails', () => {
    const { events, undecodable, next } = batchOf([received(3, 5_000), received(4, 5_000)], 5)
    expect([...stepsOf(batchOf(events, 5))]).toEqual([{ events, undecodable, next }])
  })

  it('hold a bounded number of source bytes', () => {
    const events = [received(3, 20 * MIB), received(5, 20 * MIB)]
    const undecodable = [4, 6].map((offset) => ({
      record: { offset, key: '', headers: {}, value: Buffer.alloc(0) },
      reason: 'poison',
    }))
    expect([...stepsOf({ ...batchOf(events, 7), undecodable })]).toEqual([
      { events: events.slice(0, 1), undecodable: undecodable.slice(0, 1), next: 5 },
      { events: events.slice(1), undecodable: undecodable.slice(1), next: 7 },
    ])
  })

  it('hold at least one mail of any size', () => {
    const events = [received(3, 200 * MIB), received(4, 1)]
    expect([...stepsOf(batchOf(events, 5))].map(({ next }) => next)).toEqual([4, 5])
  })

  it.each([
    { what: 'inboxes that end', event: expired },
    {
      what: 'inboxes with many labels',
      event: {
        ...created,
        labels: Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`label-${n}`, 'value'])),
      },
    },
  ])('hold a bounded number of writes: few $what', ({ event }) => {
    const events = Array.from({ length: 200 }, (_, offset) => eventAt(offset, event))
    const steps = [...stepsOf(batchOf(events, 200))]
    for (const step of steps) expect(step.events.length).toBeLessThanOrEqual(40)
    expect(steps.flatMap((step) => step.events)).toEqual(events)
    expect(steps.at(-1)?.next).toBe(200)
  })

  it('are one empty step for a batch without events', () => {
    expect([...stepsOf(batchOf([], 9))]).toEqual([{ events: [], undecodable: [], next: 9 }])
  })
})
