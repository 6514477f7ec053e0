import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { InboxCreated } from '#libs/domain/inbox/events.js'
import {
  changed,
  created,
  deleted,
  expired,
  minute,
  OTHER_KEY_ID,
  tokenIssued,
  tokenRevoked,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { InboxListQuery } from './inbox-lists.js'
import {
  followerOf,
  inboxIdIn,
  makeInbox,
  PARTITIONS,
  type ReadModelHarness,
} from './read-model-harness.contract.js'

const otherAccount = idFromBytes('acc', Buffer.alloc(16, 8))

/** The inboxes of the example, distributed over all partitions, and how they end. */
const FACTS: (Partial<InboxCreated> & { end?: 'deleted' | 'expired' })[] = [
  { labels: { run: '42', shard: 'a' } },
  { labels: { run: '42', shard: 'b' }, end: 'deleted' },
  { labels: { run: '421' }, expiresAt: minute(10) },
  { labels: { run: '42', shard: 'a' }, expiresAt: minute(10), end: 'expired' },
  { environment: 'production' },
  { accountId: otherAccount },
  { labels: { run: '42', shard: 'b' }, expiresAt: minute(20) },
  { labels: { run: '42', shard: 'a' } },
]

const inboxes = FACTS.map(({ end, ...facts }, n) => ({
  end,
  event: makeInbox(inboxIdIn(n % PARTITIONS, n), facts),
}))
const idOf = (n: number) => inboxes[n]?.event.inboxId ?? null

export function describeInboxQueries(current: () => ReadModelHarness): void {
  beforeEach(async () => {
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const follower = await followerOf(current().store, partition)
      for (const { end, event } of inboxes.filter((_, n) => n % PARTITIONS === partition)) {
        const { inboxId, expiresAt } = event
        await follower.follow(event)
        if (end === 'deleted') await follower.follow({ ...deleted(minute(3)), inboxId })
        if (end === 'expired') await follower.follow({ ...expired, inboxId, expiredAt: expiresAt })
      }
    }
  })

  /** The numbers of the inboxes listed, by default the active ones of the example's environment, oldest first. */
  async function listed(query: Partial<InboxListQuery> = {}) {
    const { accountId, environment } = created
    const all = { accountId, environment, state: 'active', order: 'asc', after: null } as const
    const found = await current().queries.listInboxes({
      ...all,
      labels: [],
      limit: 100,
      now: minute(5),
      ...query,
    })
    return found.map(({ id }) => inboxes.findIndex(({ event }) => event.inboxId === id))
  }

  it('finds an inbox by its id and by its address', async () => {
    const { queries } = current()
    for (const { end, event } of inboxes) {
      const row = await queries.inbox(event.inboxId)
      expect(row?.inbox).toMatchObject({ id: event.inboxId, state: end ?? 'active', labels: event.labels })
      expect(await queries.inboxAt(event.address)).toEqual(row)
    }
    const unknown = makeInbox(inboxIdIn(1, 99))
    expect(await queries.inbox(unknown.inboxId)).toBeNull()
    expect(await queries.inboxAt(unknown.address)).toBeNull()
  })

  it.each(['oldest', 'newest'])(
    'finds the newest inbox of an address, if the %s is projected first',
    async (first) => {
      const { store, queries } = current()
      const { address } = makeInbox(inboxIdIn(0, first === 'oldest' ? 101 : 102))
      const inboxes = [0, 1].map((partition) => ({ partition, id: inboxIdIn(partition, 103) }))
      const oldestFirst = inboxes.toSorted((one, other) => (one.id < other.id ? -1 : 1))
      for (const { partition, id } of first === 'oldest' ? oldestFirst : oldestFirst.toReversed()) {
        await (await followerOf(store, partition)).follow(makeInbox(id, { address }))
      }
      expect((await queries.inboxAt(address))?.inbox.id).toBe(oldestFirst[1]?.id)
    },
  )

  it('keeps the tokens of an inbox, also after its end', async () => {
    const inboxId = inboxIdIn(0, 100)
    const events = [makeInbox(inboxId), { ...tokenIssued(minute(1)), inboxId }]
    const follower = await followerOf(current().store, 0)
    for (const event of events) await follower.follow(event)
    const { tokenId: id, hash, access, keyId, issuedAt, expiresAt } = tokenIssued(minute(1))
    const token = { id, hash, access, keyId, issuedAt, expiresAt, revokedAt: null }
    const tokens = async () => (await current().queries.inbox(inboxId))?.inbox.tokens
    expect(await tokens()).toEqual([token])
    await follower.follow({ ...tokenRevoked(minute(2)), inboxId })
    expect(await tokens()).toEqual([{ ...token, revokedAt: minute(2) }])
    await follower.follow({ ...deleted(minute(3)), inboxId })
    expect(await tokens()).toEqual([{ ...token, revokedAt: minute(2) }])
  })

  it('keeps an ended inbox without its sealed details', async () => {
    const row = await current().queries.inbox(inboxIdIn(1, 1))
    expect(row?.inbox).toMatchObject({ state: 'deleted', endedAt: minute(3), endedBy: OTHER_KEY_ID })
    expect(row?.inbox).not.toHaveProperty('sealed')
    expect(row?.endOffset).toBe(2)
  })

  test.each<{ what: string; query: Partial<InboxListQuery>; expected: number[] }>([
    { what: 'an environment’s active inboxes', query: {}, expected: [0, 2, 6, 7] },
    { what: 'its deleted ones', query: { state: 'deleted' }, expected: [1] },
    { what: 'its expired ones', query: { state: 'expired' }, expected: [3] },
    { what: 'another environment’s', query: { environment: 'production' }, expected: [4] },
    { what: 'another account’s', query: { accountId: otherAccount }, expected: [5] },
    { what: 'nothing for an environment without inboxes', query: { environment: 'stag' }, expected: [] },
    { what: 'those with a label', query: { labels: [['run', '42']] }, expected: [0, 6, 7] },
    {
      what: 'those with every label',
      query: {
        labels: [
          ['run', '42'],
          ['shard', 'a'],
        ],
      },
      expected: [0, 7],
    },
    { what: 'none with another value of a label', query: { labels: [['run', '4']] }, expected: [] },
    { what: 'none with an unknown label', query: { labels: [['constructor', 'x']] }, expected: [] },
    {
      what: 'deleted ones with a label',
      query: { state: 'deleted', labels: [['shard', 'b']] },
      expected: [1],
    },
  ])('lists $what', async ({ query, expected }) => {
    expect(await listed(query)).toEqual(expected)
    expect(await listed({ ...query, order: 'desc' })).toEqual(expected.toReversed())
  })

  const STATES: { now: number; active: number[]; expired: number[] }[] = [
    { now: 9, active: [0, 2, 6, 7], expired: [3] },
    { now: 10, active: [0, 6, 7], expired: [2, 3] },
    { now: 20, active: [0, 7], expired: [2, 3, 6] },
    { now: 30, active: [], expired: [0, 2, 3, 6, 7] },
  ]

  async function expectLists({ now, ...lists }: (typeof STATES)[number]): Promise<void> {
    expect(await listed({ now: minute(now) })).toEqual(lists.active)
    for (const [state, expected] of [
      ['active', lists.active] as const,
      ['expired', lists.expired] as const,
    ]) {
      const query = { state, now: minute(now) }
      expect(await listed({ ...query, order: 'desc' })).toEqual(expected.toReversed())
      expect(await listed({ ...query, limit: 2 })).toEqual(expected.slice(0, 2))
      for (const after of expected) {
        expect(await listed({ ...query, after: idOf(after) })).toEqual(expected.filter((n) => n > after))
        expect(await listed({ ...query, after: idOf(after), order: 'desc' })).toEqual(
          expected.toReversed().filter((n) => n < after),
        )
      }
    }
    const labelled = await listed({ state: 'expired', now: minute(now), labels: [['run', '42']] })
    expect(labelled).toEqual(lists.expired.filter((n) => n !== 2))
  }

  test.each(STATES)('at minute $now lists inboxes past their expiry as expired', expectLists)

  it('does so with a thousand inboxes of another account that are past their expiry', async () => {
    const facts = { accountId: otherAccount, expiresAt: minute(1) }
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const numbers = Array.from({ length: 251 }, (_, n) => 100 + n)
      const others = numbers.map((n) => makeInbox(inboxIdIn(partition, n), facts))
      expect(await (await followerOf(current().store, partition)).follow(...others)).toBe('applied')
    }
    for (const states of STATES) await expectLists(states)
  })

  it('follow the change of an inbox: its labels, and when it is due', async () => {
    const { store, queries } = current()
    const [inboxId, follower] = [inboxIdIn(2, 2), await followerOf(store, 2)]
    const change = async (revision: number, labels: Record<string, string>, expiresAt: Date) => {
      const about = { inboxId, revision, inbox: { keyId: created.keyId, labels } }
      await follower.follow({ ...changed(minute(1)), ...about, lifetime: { duration: '1h', expiresAt } })
    }
    const dueAt = async (n: number) =>
      (await queries.leaseDue({ now: minute(n), limit: 100 })).includes(inboxId)
    await change(1, { run: '42', shard: 'c' }, minute(60))
    expect(await listed({ labels: [['run', '421']] })).toEqual([])
    expect(await listed({ labels: [['run', '42']] })).toEqual([0, 2, 6, 7])
    expect(await listed({ labels: [['shard', 'c']] })).toEqual([2])
    expect(await listed({ now: minute(59) })).toEqual([2])
    expect(await dueAt(59)).toBe(false)
    await change(2, { shard: 'c' }, minute(8))
    expect(await listed({ labels: [['run', '42']] })).toEqual([0, 6, 7])
    expect(await listed({ labels: [['shard', 'c']] })).toEqual([2])
    expect(await listed({ state: 'expired', now: minute(8) })).toEqual([2, 3])
    expect(await dueAt(7)).toBe(false)
    expect(await dueAt(8)).toBe(true)
    await follower.follow({ ...deleted(minute(9)), inboxId })
    expect(await listed({ state: 'deleted', labels: [['shard', 'c']] })).toEqual([2])
    expect(await listed({ labels: [['shard', 'c']] })).toEqual([])
  })

  it('shows an inbox past its expiry as ended then, without its sealed details', async () => {
    const { accountId, environment } = created
    const [inbox] = await current().queries.listInboxes({
      ...{ accountId, environment, state: 'expired', labels: [['run', '421']] },
      ...{ order: 'asc', after: null, limit: 1, now: minute(12) },
    })
    expect(inbox).toMatchObject({ id: inboxIdIn(2, 2), state: 'expired', endedAt: minute(10), endedBy: null })
    expect(inbox).not.toHaveProperty('sealed')
  })

  it('continues after an inbox that is no longer in the list', async () => {
    expect(await listed({ after: idOf(1) })).toEqual([2, 6, 7])
    expect(await listed({ after: idOf(4), order: 'desc' })).toEqual([2, 0])
    expect(await listed({ after: idOf(1), labels: [['run', '42']], limit: 1 })).toEqual([6])
  })

  describe('leasing due inboxes', () => {
    const lease = async (now: Date, limit = 100) =>
      (await current().queries.leaseDue({ now, limit })).map((id) =>
        inboxes.findIndex(({ event }) => event.inboxId === id),
      )

    it('returns active inboxes past their expiry, of any account, earliest first', async () => {
      expect(await lease(minute(9))).toEqual([])
      expect(await lease(minute(10))).toEqual([2])
      const later = await lease(minute(31))
      expect(later.slice(0, 2)).toEqual([2, 6])
      expect(later.slice(2).toSorted()).toEqual([0, 4, 5, 7])
    })

    it('leases each inbox to one caller at a time', async () => {
      const leased = await Promise.all([lease(minute(25), 1), lease(minute(25), 1), lease(minute(25), 1)])
      expect(leased).toEqual([[2], [6], []])
      expect(await lease(minute(29))).toEqual([2, 6])
    })

    it('leaves leased inboxes in the list of expired ones', async () => {
      expect(await lease(minute(10))).toEqual([2])
      expect(await listed({ state: 'expired', now: minute(10) })).toContain(2)
    })

    it('does not return inboxes that have ended since', async () => {
      const active = await current().queries.countActive()
      expect(await lease(minute(10))).toEqual([2])
      const follower = await followerOf(current().store, 2)
      await follower.follow({ ...expired, inboxId: inboxIdIn(2, 2), expiredAt: minute(10) })
      expect(await lease(minute(25))).toEqual([6])
      expect(await current().queries.countActive()).toBe(active - 1)
    })
  })

  it('counts the active inboxes of all accounts', async () => {
    const shown = await Promise.all(inboxes.map(({ event }) => current().queries.inbox(event.inboxId)))
    const active = shown.filter((row) => row?.inbox.state === 'active')
    expect(active.length).toBeGreaterThan(2)
    expect(await current().queries.countActive()).toBe(active.length)
  })
}
