import { MAIL_QUOTAS, quotaScopesOf, WHOLE_ACCOUNT, type QuotaScope } from '#libs/domain/account/quota.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import {
  created,
  deleted,
  expired,
  messageDeleted,
  messageId,
  minute,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { MessageRangeQuery } from './inbox-views.js'
import {
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  type Follower,
  type ReadModelHarness,
} from './read-model-harness.contract.js'

const id = inboxIdIn(1)
const neighbour = inboxIdIn(1, 1)

export function describeMessageQueries(current: () => ReadModelHarness): void {
  let follower: Follower

  beforeEach(async () => {
    follower = await followerOf(current().store, 1)
    // Offsets: 0 and 1 the inboxes, 2 to 5 the messages 4, 3, 2 and 1, with a neighbour's at 4.
    await follower.follow(makeInbox(id), makeInbox(neighbour), mail(id, messageId(4)))
    await follower.follow(mail(id, messageId(3)), mail(neighbour, messageId(9)))
    await follower.follow(mail(id, messageId(2)), mail(id, messageId(1)))
  })

  async function listed(query: Partial<MessageRangeQuery> = {}) {
    const all = { inboxId: id, order: 'asc', from: 0, to: 1_000, limit: 100 } as const
    const rows = await current().queries.listMessages({ ...all, ...query })
    return rows.map((row) => [row.offset, row.message.id])
  }

  const rows = [
    [2, messageId(4)],
    [3, messageId(3)],
    [5, messageId(2)],
    [6, messageId(1)],
  ]

  it('lists an inbox’s messages in the order of the log, in both directions', async () => {
    expect(await listed()).toEqual(rows)
    expect(await listed({ order: 'desc' })).toEqual(rows.toReversed())
    expect(await listed({ inboxId: neighbour })).toEqual([[4, messageId(9)]])
    expect(await listed({ inboxId: inboxIdIn(1, 2) })).toEqual([])
  })

  test.each([
    { from: 0, to: 2, expected: [] },
    { from: 2, to: 3, expected: [0] },
    { from: 3, to: 6, expected: [1, 2] },
    { from: 4, to: 5, expected: [] },
    { from: 4, to: 1_000, expected: [2, 3] },
    { from: 3, to: 3, expected: [] },
    { from: 7, to: 1_000, expected: [] },
  ])('lists those from offset $from to before $to, in both directions', async ({ from, to, expected }) => {
    const range = expected.map((index) => rows[index])
    expect(await listed({ from, to })).toEqual(range)
    expect(await listed({ from, to, order: 'desc' })).toEqual(range.toReversed())
  })

  it('lists up to the limit, from the start of the order', async () => {
    expect(await listed({ limit: 2 })).toEqual(rows.slice(0, 2))
    expect(await listed({ limit: 2, order: 'desc' })).toEqual(rows.toReversed().slice(0, 2))
  })

  it('finds a deleted message by id, without content, but does not list it', async () => {
    const key = { inboxId: id, messageId: messageId(3) }
    await follower.follow({ ...messageDeleted(minute(2), messageId(3)), inboxId: id })
    expect(await listed()).toEqual(rows.filter(([, message]) => message !== messageId(3)))
    const { queries } = current()
    expect(await queries.message(key)).toMatchObject({
      message: { state: 'deleted', id: messageId(3), deletedAt: minute(2) },
    })
    expect([await queries.sealedParts(key, 1), await queries.raw(key)]).toEqual([null, null])
    expect((await queries.inbox(id))?.inbox.messageCount).toBe(3)
    expect(await queries.raw({ inboxId: id, messageId: messageId(4) })).not.toBeNull()
  })

  it('does not list a message that was received and deleted in one step', async () => {
    const key = { inboxId: id, messageId: messageId(7) }
    await follower.follow(mail(id, messageId(7)), { ...messageDeleted(minute(2), messageId(7)), inboxId: id })
    expect(await listed()).toEqual(rows)
    expect(await current().queries.message(key)).toMatchObject({ message: { state: 'deleted' } })
    expect(await current().queries.raw(key)).toBeNull()
  })

  test.each([deleted(minute(3)), expired])(
    'keeps no messages of an inbox after $type, but those of others',
    async (end) => {
      await follower.follow({ ...end, inboxId: id })
      const { queries } = current()
      expect(await listed()).toEqual([])
      for (const number of [1, 2, 3, 4]) {
        const key = { inboxId: id, messageId: messageId(number) }
        const left = await Promise.all([queries.message(key), queries.sealedParts(key, 1), queries.raw(key)])
        expect(left).toEqual([null, null, null])
      }
      expect((await queries.inbox(id))?.inbox).toMatchObject({ messageCount: 4 })
      expect(await listed({ inboxId: neighbour })).toEqual([[4, messageId(9)]])
      expect(await queries.raw({ inboxId: neighbour, messageId: messageId(9) })).not.toBeNull()
    },
  )

  it('ignores messages after the end', async () => {
    await follower.follow({ ...deleted(minute(3)), inboxId: id }, mail(id, messageId(8)))
    await follower.follow(mail(id, messageId(7)))
    expect(await listed()).toEqual([])
    expect(await current().queries.raw({ inboxId: id, messageId: messageId(8) })).toBeNull()
    expect(await current().queries.raw({ inboxId: id, messageId: messageId(7) })).toBeNull()
  })

  it('counts what accounts, environments and keys use of their quotas', async () => {
    const { accountId, environment, keyId } = created
    const own = quotaScopesOf({ environment, keyId })
    const others = quotaScopesOf({
      environment: 'other',
      keyId: idFromBytes('key', Buffer.alloc(16, 8)),
    }).slice(1)
    const useOf = async (scope: QuotaScope, { account = accountId, at = minute(0) } = {}) => {
      const quotas = MAIL_QUOTAS.map((quota) => ({ quota, scope }))
      const used = await current().queries.usedQuotas(account, quotas, at)
      return Object.fromEntries(MAIL_QUOTAS.map((quota, index) => [quota, used[index]]))
    }
    const { size } = mail(id, messageId(1))
    const used = (inboxes: number, made: number, received: number, stored: number) => ({
      ...{ inboxes, 'inboxes-per-day': made, 'messages-per-day': received, 'stored-bytes': stored * size },
    })
    const nothing = used(0, 0, 0, 0)
    for (const scope of own) expect(await useOf(scope)).toEqual(used(2, 2, 5, 5))
    for (const scope of others) expect(await useOf(scope)).toEqual(nothing)
    await (await followerOf(current().store, 2)).follow(makeInbox(inboxIdIn(2)))
    const removal = { ...messageDeleted(minute(2), messageId(1)), inboxId: id }
    await follower.follow(removal, mail(id, messageId(1)), removal)
    expect(await useOf(WHOLE_ACCOUNT)).toEqual(used(3, 3, 5, 4))
    await follower.follow({ ...deleted(minute(3)), inboxId: id }, mail(id, messageId(8)))
    expect(await useOf(WHOLE_ACCOUNT)).toEqual(used(2, 3, 5, 1))
    expect(await useOf(WHOLE_ACCOUNT, { account: idFromBytes('acc', Buffer.alloc(16, 8)) })).toEqual(nothing)

    const tomorrow = { at: minute(1_440) }
    expect(await useOf(WHOLE_ACCOUNT, tomorrow)).toEqual(used(2, 0, 0, 1))
    // The clock of the process that received the second one is behind.
    const late = mail(neighbour, messageId(5), minute(1_439))
    await follower.follow(mail(neighbour, messageId(8), tomorrow.at), late)
    for (const scope of own) expect(await useOf(scope, tomorrow)).toEqual(used(2, 0, 2, 3))
    await (await followerOf(current().store, 1)).begin({ logId: 'another-log' })
    for (const scope of own) expect(await useOf(scope)).toEqual(used(1, 1, 0, 0))
    for (const scope of own) expect(await useOf(scope, tomorrow)).toEqual(used(1, 0, 0, 0))
  })
}
