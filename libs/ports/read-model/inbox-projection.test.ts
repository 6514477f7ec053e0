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
import { brand, idFromBytes, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import { inboxRowsBefore, projectInboxEvents, type InboxProjection } from './projections.js'
import { ACTOR, atOffset } from './read-model-harness.contract.js'
import { history, historyEntryOf, inboxes, messages } from './tables.js'
import { isOwnerEnd, type Change, type RowChange, type RowKey, type TableOf } from './view-store.js'
import type { HistoryEntry, InboxRow, MessageRow, LoggedEvent } from './views.js'

/** Views in maps, changed as a store changes them. */
class Views {
  readonly inboxes = new Map<InboxId, InboxRow>()
  readonly messages = new Map<MessageId, { inboxId: InboxId; row: MessageRow }>()
  /** For each message, the time until which its content is kept. */
  readonly contents = new Map<MessageId, Date>()
  readonly history = new Map<number, { inboxId: InboxId; entry: HistoryEntry }>()

  /** Every index entry, by index and content. */
  readonly entries = new Set<string>()

  async apply(events: readonly LoggedEvent<InboxEvent>[]): Promise<InboxProjection> {
    const projection = projectInboxEvents(await inboxRowsBefore(this, events), events)
    for (const { event, expiresAt } of projection.received) this.contents.set(event.messageId, expiresAt)
    for (const change of projection.changes) {
      if (isOwnerEnd(change)) {
        const owned = [...this.messages].filter(([, { inboxId }]) => inboxId === change.owner)
        for (const removal of change.removalsOf(owned.map(([, { row }]) => row))) this.change(removal)
      } else this.change(change)
    }
    return projection
  }

  rows<Row>({ name }: TableOf<Row>, keys: readonly RowKey[]): Promise<(Row | null)[]> {
    const rows = keys.map(({ key }) =>
      name === inboxes.name ? this.inboxes.get(brand('inb', key)) : this.messages.get(brand('msg', key))?.row,
    )
    return Promise.resolve(rows.map((row) => (row ?? null) as Row | null))
  }

  private change({ table, key, row, remove, put, removesContents }: RowChange): void {
    // An entry that was never put is not removed, and none is put twice.
    for (const entry of remove) expect(this.entries.delete(JSON.stringify(entry))).toBe(true)
    for (const entry of put) {
      expect(this.entries.has(JSON.stringify(entry))).toBe(false)
      this.entries.add(JSON.stringify(entry))
    }
    const stored = typeof row === 'object' ? row.put : null
    if (table === inboxes) this.inboxes.set(brand('inb', key.key), stored as InboxRow)
    else if (table === messages) {
      const id = brand('msg', key.key)
      if (removesContents) this.contents.delete(id)
      if (row === 'remove') this.drop(id)
      else this.messages.set(id, { inboxId: brand('inb', key.owner ?? ''), row: stored as MessageRow })
    } else {
      const [first] = put
      if (table !== history || first === undefined) throw new Error(`an inbox event changed ${table.name}`)
      const entry = historyEntryOf(first.entry)
      expect(this.history.has(entry.offset)).toBe(false)
      this.history.set(entry.offset, { inboxId: brand('inb', key.owner ?? ''), entry })
    }
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
  return changes.filter(({ table }) => table !== history)
}

describe('the changes of a run of events', () => {
  const [one, two] = [received(minute(1)), received(minute(2), messageId(2))]
  /** Thirty days after the creation of the inbox, whose expiry may be moved there. */
  const latest = minute(30 * 24 * 60)

  it('contain each inbox and message once, in its last state, with the offsets of the log', async () => {
    const { changes, received: contents } = await new Views().apply(logged([created, one, two, one]))
    expect(rowsIn(changes)).toMatchObject([
      { table: { name: 'inboxes' }, row: { put: { inbox: { messageCount: 2 }, endOffset: 5 } }, remove: [] },
      { table: { name: 'messages' }, row: { put: { message: { id: one.messageId }, offset: 2 } } },
      { table: { name: 'messages' }, row: { put: { message: { id: two.messageId }, offset: 4 } } },
    ])
    expect(contents).toEqual([one, two].map((event) => ({ event, expiresAt: latest })))
  })

  it('contain no content of a message that is deleted in the same run', async () => {
    const { changes, received: contents } = await new Views().apply(
      logged([created, one, messageDeleted(minute(3))]),
    )
    expect(rowsIn(changes)).toMatchObject([
      { table: { name: 'inboxes' }, row: { put: { inbox: { messageCount: 0 }, endOffset: 5 } } },
      { table: { name: 'messages' }, row: { put: { message: { state: 'deleted' }, offset: 2 } } },
    ])
    expect(contents).toEqual([])
  })

  it('have no labels in index entries, which are many', async () => {
    const views = new Views()
    const label = 'v'.repeat(128)
    await views.apply(logged([{ ...created, labels: { run: label } }, one]))
    expect([...views.entries].filter((entry) => entry.includes('"labels"'))).toHaveLength(1)
    expect([...views.entries].filter((entry) => entry.includes(label))).toEqual([])
  })

  it('keep the offset of a message that is deleted later', async () => {
    const views = new Views()
    await views.apply(logged([created, one]))
    const { changes } = await views.apply([atOffset(9, messageDeleted(minute(3)))])
    expect(rowsIn(changes)).toMatchObject([
      { table: { name: 'inboxes' }, row: { put: { endOffset: 10 } } },
      { table: { name: 'messages' }, row: { put: { message: { state: 'deleted' }, offset: 2 } } },
    ])
  })

  it('drop the messages of an inbox that ends, also those received in the same run', async () => {
    const { changes, received: contents } = await new Views().apply(
      logged([created, one, deleted(minute(3)), two]),
    )
    expect(rowsIn(changes)).toMatchObject([
      { table: { name: 'inboxes' }, row: { put: { inbox: { state: 'deleted' }, endOffset: 5 } } },
      { table: { name: 'messages' }, owner: created.inboxId },
    ])
    expect(contents).toEqual([])
  })

  it('contain a history entry for each event, with its metadata and nothing sealed', async () => {
    const events = [created, one, messageDeleted(minute(3)), deleted(minute(4)), two]
    const { changes } = await new Views().apply(logged(events))
    const recorded = changes.flatMap((change) =>
      change.table === history && !isOwnerEnd(change) ? [change] : [],
    )
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
    expect(recorded.map(({ key }) => key.owner)).toEqual(entries.map(() => inboxId))
    expect(recorded.map(({ put: [first] }) => first && historyEntryOf(first.entry))).toEqual(entries)
  })

  it('are empty for an inbox that does not exist', async () => {
    expect(await new Views().apply(logged([one, deleted(minute(3))]))).toEqual({ changes: [], received: [] })
  })
})
