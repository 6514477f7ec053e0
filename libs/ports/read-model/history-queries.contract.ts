import {
  changed,
  deleted,
  expired,
  messageDeleted,
  messageId,
  minute,
  OTHER_KEY_ID,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { MessageRangeQuery } from './inbox-views.js'
import {
  ACTOR,
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  atOffset,
  type Follower,
  type ReadModelHarness,
} from './read-model-harness.contract.js'

const id = inboxIdIn(1)
const neighbour = inboxIdIn(1, 1)
const KEY = makeInbox(id).keyId

export function describeHistoryQueries(current: () => ReadModelHarness): void {
  let follower: Follower
  const removal = { ...messageDeleted(minute(2), messageId(4)), inboxId: id }

  beforeEach(async () => {
    follower = await followerOf(current().store, 1)
    // Offsets: 0 and 1 the inboxes, 2 and 4 the inbox's messages, 5 a deletion, with a neighbour's message at 3.
    await follower.follow(makeInbox(id), makeInbox(neighbour), mail(id, messageId(4)))
    await follower.follow(mail(neighbour, messageId(9)), mail(id, messageId(3)))
    await follower.follow(removal)
  })

  const historyOf = (query: Partial<MessageRangeQuery> = {}) =>
    current().queries.history({ inboxId: id, order: 'asc', from: 0, to: 1_000, limit: 100, ...query })
  const offsets = async (query: Partial<MessageRangeQuery> = {}) =>
    (await historyOf(query)).map(({ offset }) => offset)

  it('lists an inbox’s events in the order of the log, in both directions', async () => {
    expect(await offsets()).toEqual([0, 2, 4, 5])
    expect(await offsets({ order: 'desc' })).toEqual([5, 4, 2, 0])
    expect(await offsets({ inboxId: neighbour })).toEqual([1, 3])
    expect(await offsets({ inboxId: inboxIdIn(1, 2) })).toEqual([])
  })

  it('returns each event with its attributes', async () => {
    const none = { messageId: null, keyId: null, actor: null, changed: null, size: null, digest: null }
    const { messageId: mailId, receivedAt, size, digest } = mail(id, messageId(4))
    const [createdEntry, received, , removed] = await historyOf()
    const idAt = (offset: number) => atOffset(offset, removal).id
    expect(createdEntry).toEqual({
      ...none,
      offset: 0,
      id: idAt(0),
      type: 'InboxCreated',
      time: minute(0),
      keyId: KEY,
    })
    expect(received).toEqual({
      ...{ ...none, offset: 2, id: idAt(2), type: 'MessageReceived' },
      ...{ time: receivedAt, messageId: mailId, size, digest },
    })
    expect(removed).toEqual({
      ...{ ...none, offset: 5, id: idAt(5), type: 'MessageDeleted' },
      ...{ time: minute(2), messageId: mailId, keyId: OTHER_KEY_ID, actor: ACTOR },
    })
  })

  it('names what each change of the inbox has changed', async () => {
    const lifetime = { duration: '2h', expiresAt: minute(120) }
    const with1 = { inbox: { keyId: KEY, labels: { run: '1' } } }
    const without = { inbox: { keyId: KEY, labels: {} } }
    const events = [
      { revision: 1, lifetime, ...without },
      { revision: 2, sealed: Buffer.from('another name'), ...without },
      { revision: 3, lifetime, ...with1 },
      { revision: 4, sealed: Buffer.from('one more'), ...with1 },
      { revision: 5, ...without },
    ].map((facts, index) => ({ ...changed(minute(index + 3), facts), inboxId: id }))
    await follower.follow(...events.slice(0, 3))
    await follower.follow(...events.slice(3))
    expect((await historyOf({ from: 6 })).map((entry) => entry.changed)).toEqual([
      ['duration'],
      ['name'],
      ['duration', 'labels'],
      ['name'],
      ['labels'],
    ])
  })

  test.each([
    { from: 0, to: 1, expected: [0] },
    { from: 1, to: 5, expected: [2, 4] },
    { from: 2, to: 4, expected: [2] },
    { from: 3, to: 3, expected: [] },
    { from: 5, to: 1_000, expected: [5] },
    { from: 6, to: Number.MAX_SAFE_INTEGER, expected: [] },
    { from: 0, to: Number.MAX_SAFE_INTEGER, expected: [0, 2, 4, 5] },
  ])('lists those from offset $from to before $to, in both directions', async ({ from, to, expected }) => {
    expect(await offsets({ from, to })).toEqual(expected)
    expect(await offsets({ from, to, order: 'desc' })).toEqual(expected.toReversed())
  })

  it('lists up to the limit, from the start of the order', async () => {
    expect(await offsets({ limit: 2 })).toEqual([0, 2])
    expect(await offsets({ limit: 2, order: 'desc' })).toEqual([5, 4])
  })

  test.each([deleted(minute(3)), expired])('is kept after $type, which is its last entry', async (end) => {
    await follower.follow({ ...end, inboxId: id }, mail(id, messageId(8)))
    await follower.follow({ ...end, inboxId: id }, mail(id, messageId(7)))
    const history = await historyOf()
    expect(history.map(({ offset }) => offset)).toEqual([0, 2, 4, 5, 6])
    expect(history.at(-1)).toMatchObject({ type: end.type, keyId: 'keyId' in end ? end.keyId : null })
    expect(await offsets({ inboxId: neighbour })).toEqual([1, 3])
  })

  it('has a repeated event once', async () => {
    const again = mail(id, messageId(3))
    await follower.follow(again, removal)
    await follower.follow(again)
    expect(await offsets()).toEqual([0, 2, 4, 5])
  })

  it('is emptied with the views, and rebuilt unchanged', async () => {
    const before = await historyOf()
    await follower.begin({ logId: 'another-log' })
    expect([await historyOf(), await offsets({ inboxId: neighbour })]).toEqual([[], []])
    await follower.follow(makeInbox(id), makeInbox(neighbour), mail(id, messageId(4)))
    await follower.follow(mail(neighbour, messageId(9)), mail(id, messageId(3)), removal)
    expect(await historyOf()).toEqual(before)
  })
}
