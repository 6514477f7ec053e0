import { idFromBytes, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { InboxCreated } from '#libs/domain/inbox/events.js'
import {
  created,
  deleted,
  expired,
  messageDeleted,
  messageId,
  minute,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { EnvironmentQuery } from './inbox-views.js'
import {
  Follower,
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  type ReadModelHarness,
} from './read-model-harness.contract.js'

const otherAccount = idFromBytes('acc', Buffer.alloc(16, 8))
const one = inboxIdIn(1)
const two = inboxIdIn(1, 1)
const hidden = inboxIdIn(1, 2)
const production = inboxIdIn(1, 3)
const foreign = inboxIdIn(1, 4)
const elsewhere = inboxIdIn(2)

/** An inbox without a password. */
function openInbox(inboxId: InboxId, facts: Partial<InboxCreated> = {}): InboxCreated {
  return makeInbox(inboxId, { isProtected: false, ...facts })
}

function nthMessageId(n: number): MessageId {
  const bytes = Buffer.alloc(16, 255)
  bytes.writeUInt32BE(n)
  return idFromBytes('msg', bytes)
}

export function describeEnvironmentLists(current: () => ReadModelHarness): void {
  let follower: Follower

  beforeEach(async () => {
    follower = await followerOf(current().store, 1)
    // Offsets: 0 to 4 the inboxes, 5 to 11 the messages 1 to 7.
    await follower.follow(
      openInbox(one),
      openInbox(two),
      makeInbox(hidden, { isProtected: true }),
      openInbox(production, { environment: 'production' }),
      openInbox(foreign, { accountId: otherAccount }),
    )
    await follower.follow(mail(one, messageId(1)), mail(two, messageId(2)), mail(hidden, messageId(3)))
    await follower.follow(mail(production, messageId(4)), mail(foreign, messageId(5)))
    await follower.follow(mail(one, messageId(6), minute(6)), mail(two, messageId(7)))
    const other = await followerOf(current().store, 2)
    await other.follow(openInbox(elsewhere), mail(elsewhere, messageId(8)))
  })

  async function listed(query: Partial<EnvironmentQuery> = {}) {
    const { accountId, environment } = created
    const all = {
      accountId,
      environment,
      partition: 1,
      order: 'asc',
      from: 0,
      to: 1_000,
      limit: 100,
    } as const
    const found = await current().queries.listEnvironmentMessages({ ...all, ...query })
    return found.map((message) => [message.offset, message.messageId])
  }

  const rows = [
    [5, messageId(1)],
    [6, messageId(2)],
    [10, messageId(6)],
    [11, messageId(7)],
  ]

  it('lists an environment’s messages of a partition in the order of the log, in both directions', async () => {
    expect(await listed()).toEqual(rows)
    expect(await listed({ order: 'desc' })).toEqual(rows.toReversed())
    expect(await listed({ partition: 2 })).toEqual([[1, messageId(8)]])
    expect(await listed({ partition: 3 })).toEqual([])
  })

  it('names the inbox and the time of each', async () => {
    const { accountId, environment } = created
    const range = { order: 'asc', from: 10, to: 11, limit: 1 } as const
    expect(
      await current().queries.listEnvironmentMessages({ accountId, environment, partition: 1, ...range }),
    ).toEqual([{ inboxId: one, messageId: messageId(6), receivedAt: minute(6), offset: 10 }])
  })

  test.each<{ what: string; query: Partial<EnvironmentQuery>; expected: unknown[] }>([
    { what: 'another environment', query: { environment: 'production' }, expected: [[8, messageId(4)]] },
    { what: 'another account', query: { accountId: otherAccount }, expected: [[9, messageId(5)]] },
    {
      what: 'an environment whose name another one begins with',
      query: { environment: 'prod' },
      expected: [],
    },
  ])('keeps the messages of $what apart', async ({ query, expected }) => {
    expect(await listed(query)).toEqual(expected)
  })

  test.each([
    { from: 0, to: 5, expected: [] },
    { from: 5, to: 6, expected: [0] },
    { from: 6, to: 11, expected: [1, 2] },
    { from: 7, to: 10, expected: [] },
    { from: 7, to: 1_000, expected: [2, 3] },
    { from: 0, to: Number.MAX_SAFE_INTEGER, expected: [0, 1, 2, 3] },
    { from: 6, to: 6, expected: [] },
  ])('lists those from offset $from to before $to, in both directions', async ({ from, to, expected }) => {
    const range = expected.map((index) => rows[index])
    expect(await listed({ from, to })).toEqual(range)
    expect(await listed({ from, to, order: 'desc' })).toEqual(range.toReversed())
  })

  it('lists up to the limit, from the start of the order', async () => {
    expect(await listed({ limit: 3 })).toEqual(rows.slice(0, 3))
    expect(await listed({ limit: 3, order: 'desc' })).toEqual(rows.toReversed().slice(0, 3))
  })

  it('does not list a deleted message, nor one that was received and deleted in one step', async () => {
    await follower.follow({ ...messageDeleted(minute(7), messageId(2)), inboxId: two })
    await follower.follow(mail(one, messageId(9)), {
      ...messageDeleted(minute(7), messageId(9)),
      inboxId: one,
    })
    expect(await listed()).toEqual(rows.filter(([, id]) => id !== messageId(2)))
  })

  test.each([deleted(minute(8)), expired])('keeps none of an inbox after $type', async (end) => {
    const many = Array.from({ length: 1_200 }, (_, n) => mail(one, nthMessageId(n)))
    await follower.follow(...many)
    expect(await listed({ limit: 2_000, to: 10_000 })).toHaveLength(rows.length + many.length)
    await follower.follow({ ...end, inboxId: one }, mail(one, messageId(99)))
    expect(await listed({ to: 10_000 })).toEqual([rows[1], rows[3]])
    await follower.follow({ ...deleted(minute(9)), inboxId: two })
    expect(await listed({ to: 10_000 })).toEqual([])
  })

  it('lists deletions of messages and ends of inboxes as in their history, without protected inboxes', async () => {
    await follower.follow(
      { ...messageDeleted(minute(7), messageId(2)), inboxId: two },
      { ...messageDeleted(minute(7), messageId(3)), inboxId: hidden },
      { ...deleted(minute(8)), inboxId: one },
      { ...deleted(minute(8)), inboxId: production },
      { ...deleted(minute(8)), inboxId: hidden },
      { ...expired, inboxId: two },
    )
    const { accountId, environment } = created
    const all = {
      accountId,
      environment,
      partition: 1,
      order: 'asc',
      from: 0,
      to: 1_000,
      limit: 100,
    } as const
    const { queries } = current()
    const events = await queries.listEnvironmentEvents(all)
    expect(events.map(({ inboxId, entry }) => [entry.offset, entry.type, inboxId])).toEqual([
      [12, 'MessageDeleted', two],
      [14, 'InboxDeleted', one],
      [17, 'InboxExpired', two],
    ])
    const history = await queries.history({ ...all, inboxId: two, from: 12 })
    expect(events.filter(({ inboxId }) => inboxId === two).map(({ entry }) => entry)).toEqual(history)
    const ranged = await queries.listEnvironmentEvents({ ...all, order: 'desc', from: 13, to: 17, limit: 1 })
    expect(ranged.map(({ inboxId }) => inboxId)).toEqual([one])
    await new Follower(current().store, 1).begin({ logId: 'another-log' })
    expect(await queries.listEnvironmentEvents(all)).toEqual([])
  })

  it('is emptied and rebuilt with its partition only', async () => {
    const again = new Follower(current().store, 1)
    await again.begin({ logId: 'another-log' })
    expect(await listed()).toEqual([])
    expect(await listed({ partition: 2 })).toEqual([[1, messageId(8)]])
    await again.follow(openInbox(one), mail(one, messageId(1)))
    expect(await listed()).toEqual([[1, messageId(1)]])
  })
}
