import fc from 'fast-check'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import {
  anyHistory,
  anyInboxEvent,
  created,
  deleted,
  messageDeleted,
  messageId,
  minute,
  OTHER_KEY_ID,
  received,
} from '#libs/domain/inbox/inbox.test-support.js'
import { idFromBytes, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { MessageKey } from './projection-store.js'
import { inboxRowsBefore, projectInboxEvents, type InboxProjection } from './projections.js'
import { ACTOR, atOffset } from './read-model-harness.contract.js'
import type { Change, HistoryEntry, InboxRow, MessageRow, LoggedEvent } from './views.js'

/** Views in maps, changed as a store changes them. */
class Views {
  readonly inboxes = new Map<InboxId, InboxRow>()
  readonly messages = new Map<MessageId, { inboxId: InboxId; row: MessageRow }>()
  /** For each message, the time until which its content is kept. */
  readonly contents = new Map<MessageId, Date>()
  readonly history = new Map<number, { inboxId: InboxId; entry: HistoryEntry }>()

  async apply(events: readonly LoggedEvent<InboxEvent>[]): Promise<InboxProjection> {
    const store = {
      inboxes: (ids: readonly InboxId[]) => Promise.resolve(ids.map((id) => this.inboxes.get(id) ?? null)),
      messages: (keys: readonly MessageKey[]) =>
        Promise.resolve(keys.map(({ messageId: id }) => this.messages.get(id)?.row ?? null)),
    }
    const projection = projectInboxEvents(await inboxRowsBefore(store, events), events)
    for (const { event, expiresAt } of projection.received) this.contents.set(event.messageId, expiresAt)
    for (const change of projection.changes) {
      switch (change.type) {
        case 'put-inbox':
          expect(change.previous).toEqual(this.inboxes.get(change.row.inbox.id)?.inbox ?? null)
          this.inboxes.set(change.row.inbox.id, change.row)
          break
        case 'put-message': {
          const { inbox, row, previous } = change
          expect(previous).toEqual(this.messages.get(row.message.id)?.row ?? null)
          this.messages.set(row.message.id, { inboxId: inbox.id, row })
          if (row.message.state === 'deleted') this.contents.delete(row.message.id)
          break
        }
        case 'drop-messages':
          for (const [id, { inboxId }] of this.messages) if (inboxId === change.inbox.id) this.drop(id)
          break
        case 'put-history':
          expect(this.history.has(change.entry.offset)).toBe(false)
          this.history.set(change.entry.offset, { inboxId: change.inbox.id, entry: change.entry })
          break
        case 'put-account':
        case 'put-key':
        case 'put-delivery':
        case 'put-replay':
        case 'put-webhook-health':
        case 'put-webhook':
        case 'remove-webhook':
          throw new Error(`an inbox event changed something else: ${change.type}`)
      }
    }
    return projection
  }

  private drop(id: MessageId): void {
    this.messages.delete(id)
    this.contents.delete(id)
  }
}

function logged(events: readonly InboxEvent[]): LoggedEvent<InboxEvent>[] {
  return events.map((event, index) => atOffset(index * 2, event))
}

/** The same event for another inbox and other messages. */
function moved(event: InboxEvent, inbox: number): InboxEvent {
  const inboxId = idFromBytes('inb', Buffer.alloc(16, inbox))
  if (!('messageId' in event)) return { ...event, inboxId }
  const number = Number(event.messageId.at(-1))
  return { ...event, inboxId, messageId: messageId(inbox * 16 + number) }
}

const INBOXES = [1, 2, 3]

/** The interleaved histories of a few inboxes, as the log of a partition may contain them. */
const anyLog = fc
  .tuple(anyHistory, fc.array(fc.tuple(anyInboxEvent, fc.constantFrom(...INBOXES)), { maxLength: 30 }))
  .map(([[first = created], rest]) => [
    ...INBOXES.map((inbox) => moved(first, inbox)),
    ...rest.map(([event, inbox]) => moved(event, inbox)),
  ])

async function oneByOne(events: readonly LoggedEvent<InboxEvent>[]): Promise<Views> {
  const views = new Views()
  for (const event of events) await views.apply([event])
  return views
}

describe('projecting the events of inboxes', () => {
  it('gives the same views in batches of any size as one by one', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyLog,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 40, maxLength: 40 }),
        async (log, sizes) => {
          const events = logged(log)
          const views = new Views()
          let at = 0
          for (const size of sizes) await views.apply(events.slice(at, (at += size)))
          expect(at).toBeGreaterThanOrEqual(events.length)
          expect(views).toEqual(await oneByOne(events))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('changes nothing if it is repeated from any earlier position', async () => {
    await fc.assert(
      fc.asyncProperty(anyLog, fc.nat(), async (log, from) => {
        const events = logged(log)
        const views = await oneByOne(events)
        const { changes, received: contents } = await views.apply(events.slice(from % events.length))
        expect([changes, contents]).toEqual([[], []])
      }),
      { numRuns: 300 },
    )
  })

  it('puts exactly the events that took effect into the history, in the order of the log', async () => {
    await fc.assert(
      fc.asyncProperty(anyLog, async (log) => {
        const expected: [number, InboxEvent['type']][] = []
        const views = new Views()
        for (const event of logged(log)) {
          const before = JSON.stringify([...views.inboxes.values()])
          await views.apply([event])
          const isChanged = JSON.stringify([...views.inboxes.values()]) !== before
          if (isChanged) expected.push([event.offset, event.event.type])
        }
        const whole = new Views()
        await whole.apply(logged(log))
        const found = [...whole.history.values()].map(({ entry }) => [entry.offset, entry.type])
        expect(found).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })

  it('stores content for exactly the messages that are present', async () => {
    await fc.assert(
      fc.asyncProperty(anyLog, async (log) => {
        const views = new Views()
        await views.apply(logged(log))
        const present = [...views.messages].filter(([, { row }]) => row.message.state === 'present')
        expect([...views.contents.keys()].sort()).toEqual(present.map(([id]) => id).sort())
      }),
    )
  })
})

/** The changes other than history entries. */
function rowsIn(changes: readonly Change[]): Change[] {
  return changes.filter(({ type }) => type !== 'put-history')
}

describe('the changes of a run of events', () => {
  const [one, two] = [received(minute(1)), received(minute(2), messageId(2))]
  /** Thirty days after the creation of the inbox, whose expiry may be moved there. */
  const latest = minute(30 * 24 * 60)

  it('contain each inbox and message once, in its last state, with the offsets of the log', async () => {
    const { changes, received: contents } = await new Views().apply(logged([created, one, two, one]))
    expect(rowsIn(changes)).toMatchObject([
      { type: 'put-inbox', row: { inbox: { messageCount: 2 }, endOffset: 5 }, previous: null },
      { type: 'put-message', row: { message: { id: one.messageId }, offset: 2 } },
      { type: 'put-message', row: { message: { id: two.messageId }, offset: 4 } },
    ])
    expect(contents).toEqual([one, two].map((event) => ({ event, expiresAt: latest })))
  })

  it('contain no content of a message that is deleted in the same run', async () => {
    const { changes, received: contents } = await new Views().apply(
      logged([created, one, messageDeleted(minute(3))]),
    )
    expect(rowsIn(changes)).toMatchObject([
      { type: 'put-inbox', row: { inbox: { messageCount: 0 }, endOffset: 5 } },
      { type: 'put-message', row: { message: { state: 'deleted' }, offset: 2 } },
    ])
    expect(contents).toEqual([])
  })

  it('keep the offset of a message that is deleted later', async () => {
    const views = new Views()
    await views.apply(logged([created, one]))
    const { changes } = await views.apply([atOffset(9, messageDeleted(minute(3)))])
    expect(rowsIn(changes)).toMatchObject([
      { type: 'put-inbox', row: { endOffset: 10 } },
      { type: 'put-message', row: { message: { state: 'deleted' }, offset: 2 } },
    ])
  })

  it('drop the messages of an inbox that ends, also those received in the same run', async () => {
    const { changes, received: contents } = await new Views().apply(
      logged([created, one, deleted(minute(3)), two]),
    )
    expect(rowsIn(changes)).toMatchObject([
      { type: 'put-inbox', row: { inbox: { state: 'deleted' }, endOffset: 5 } },
      { type: 'drop-messages', inbox: { id: created.inboxId, state: 'deleted' } },
    ])
    expect(contents).toEqual([])
  })

  it('contain a history entry for each event, with its metadata and nothing sealed', async () => {
    const events = [created, one, messageDeleted(minute(3)), deleted(minute(4)), two]
    const { changes } = await new Views().apply(logged(events))
    const history = changes.flatMap((change) => (change.type === 'put-history' ? [change] : []))
    const none = { messageId: null, keyId: null, actor: null, changed: null, size: null, digest: null }
    const deletion = { ...none, keyId: OTHER_KEY_ID, actor: ACTOR }
    const { messageId: id, size, digest } = one
    const { inboxId, keyId } = created
    const entries = [
      { ...none, type: 'InboxCreated', time: minute(0), keyId },
      { ...none, type: 'MessageReceived', time: minute(1), messageId: id, size, digest },
      { ...deletion, type: 'MessageDeleted', time: minute(3), messageId: id },
      { ...deletion, type: 'InboxDeleted', time: minute(4) },
    ].map((entry, index) => ({ offset: index * 2, id: atOffset(index * 2, created).id, ...entry }))
    expect(history.map(({ inbox, entry }) => ({ id: inbox.id, entry }))).toEqual(
      entries.map((entry) => ({ id: inboxId, entry })),
    )
  })

  it('are empty for an inbox that does not exist', async () => {
    expect(await new Views().apply(logged([one, deleted(minute(3))]))).toEqual({ changes: [], received: [] })
  })
})
