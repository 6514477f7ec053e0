import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import {
  changed,
  created,
  deleted,
  expired,
  labelled,
  messageDeleted,
  messageId,
  minute,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { LabelCountQuery, LabelQuery } from './inbox-views.js'
import {
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  type ReadModelHarness,
} from './read-model-harness.contract.js'

const [first, second, third] = [inboxIdIn(1), inboxIdIn(2, 1), inboxIdIn(1, 2)]
const run = { labels: { run: '42' }, isProtected: false }
const otherAccount = idFromBytes('acc', Buffer.alloc(16, 8))

export function describeLabelCounts(current: () => ReadModelHarness): void {
  /** Applies events in steps of one event, or all of a partition in one step. */
  async function follow(partition: number, ...steps: (InboxEvent | InboxEvent[])[]): Promise<void> {
    const follower = await followerOf(current().store, partition)
    for (const step of steps) expect(await follower.follow(...[step].flat())).toBe('applied')
  }

  function query(wanted: Partial<LabelQuery> = {}): LabelQuery {
    const { accountId, environment } = created
    return { accountId, environment, name: 'run', value: '42', now: minute(5), ...wanted }
  }
  const totals = (wanted?: Partial<LabelQuery>) => current().queries.labelTotals(query(wanted))
  async function counts(wanted: Partial<LabelCountQuery> = {}): Promise<unknown[]> {
    const all = { from: 0, to: Number.MAX_SAFE_INTEGER, limit: 100 }
    const found = await current().queries.listLabelCounts({ ...query(wanted), ...all, ...wanted })
    return found.map(({ inboxId, received }) => [inboxId, received])
  }

  it('counts the inboxes of a label in all partitions, and what each has received', async () => {
    expect(await totals()).toEqual({ inboxes: 0, received: 0 })
    await follow(1, makeInbox(first, run), mail(first, messageId(1)), [
      makeInbox(third, { ...run, labels: { run: '42', shard: 'a' } }),
      mail(first, messageId(2)),
      mail(third, messageId(3)),
      mail(first, messageId(4)),
    ])
    await follow(2, [makeInbox(second, run)])
    expect(await totals()).toEqual({ inboxes: 3, received: 4 })
    expect(await totals({ name: 'shard', value: 'a' })).toEqual({ inboxes: 1, received: 1 })
    const all = [
      [second, 0],
      [third, 1],
      [first, 3],
    ]
    expect(await counts()).toEqual(all)
    expect(await counts({ limit: 2 })).toEqual(all.slice(0, 2))
    expect(await counts({ to: 1 })).toEqual(all.slice(0, 1))
    expect(await counts({ from: 1, to: 3 })).toEqual(all.slice(1, 2))
    expect(await counts({ from: 2 })).toEqual(all.slice(2))
  })

  it('does not count protected inboxes, other accounts, other environments and similar labels', async () => {
    const others = [
      { ...run, isProtected: true },
      { ...run, accountId: otherAccount },
      { ...run, environment: 'production' },
      { ...run, labels: { run: '421' } },
      { ...run, labels: { run: '4' } },
      { ...run, labels: { 'run","42': '' } },
    ].map((facts, n) => makeInbox(inboxIdIn(1, n), facts))
    await follow(
      1,
      others,
      others.map(({ inboxId }, n) => mail(inboxId, messageId(n + 1))),
    )
    expect(await totals()).toEqual({ inboxes: 0, received: 0 })
    expect(await counts()).toEqual([])
    expect(await totals({ accountId: otherAccount })).toEqual({ inboxes: 1, received: 1 })
    expect(await counts({ value: '4' })).toEqual([[inboxIdIn(1, 4), 1]])
  })

  it('still counts deleted messages, and does not count repeated ones again', async () => {
    const removal = { ...messageDeleted(minute(2), messageId(1)), inboxId: first }
    await follow(1, makeInbox(first, run), mail(first, messageId(1)), removal, [
      mail(first, messageId(1)),
      mail(first, messageId(2)),
      { ...messageDeleted(minute(2), messageId(2)), inboxId: first },
    ])
    expect(await totals()).toEqual({ inboxes: 1, received: 2 })
    expect(await counts()).toEqual([[first, 2]])
  })

  test.each([deleted(minute(3)), expired])('counts an inbox for a day after $type', async (end) => {
    const makeWithMail = [makeInbox(first, run), mail(first, messageId(1))]
    await follow(1, makeInbox(third, run), makeWithMail, { ...end, inboxId: first })
    for (const now of [minute(5), minute(24 * 60 - 1)]) {
      expect(await totals({ now })).toEqual({ inboxes: 2, received: 1 })
      expect(await counts({ now })).toEqual([
        [third, 0],
        [first, 1],
      ])
    }
    const now = minute(26 * 60)
    expect(await totals({ now })).toEqual({ inboxes: 1, received: 0 })
    expect(await counts({ now })).toEqual([[third, 0]])
  })

  it('follows the labels of an inbox', async () => {
    const move = (revision: number, labels: Record<string, string>) => {
      return { ...changed(minute(2)), inboxId: first, revision, lifetime: null, inbox: labelled(labels) }
    }
    await follow(1, makeInbox(first, run), mail(first, messageId(1)), move(1, { run: '43' }))
    expect(await totals()).toEqual({ inboxes: 0, received: 0 })
    expect(await totals({ value: '43' })).toEqual({ inboxes: 1, received: 1 })
    await follow(2, makeInbox(second, { ...run, labels: {} }), [
      mail(second, messageId(1)),
      { ...move(1, { run: '42' }), inboxId: second },
      mail(second, messageId(2)),
    ])
    expect(await totals()).toEqual({ inboxes: 1, received: 2 })
    expect(await counts()).toEqual([[second, 2]])
  })

  it('counts the same after the views were emptied and rebuilt', async () => {
    const events = [
      makeInbox(first, run),
      makeInbox(third, run),
      mail(first, messageId(1)),
      mail(third, messageId(2)),
      mail(first, messageId(3)),
      { ...deleted(minute(3)), inboxId: third },
    ]
    await follow(2, makeInbox(second, run), mail(second, messageId(4)))
    await follow(1, ...events)
    const before = { totals: await totals(), counts: await counts() }
    expect(before.totals).toEqual({ inboxes: 3, received: 4 })
    const follower = await followerOf(current().store, 1)
    await follower.begin({ logId: 'another-log' })
    expect(await totals()).toEqual({ inboxes: 1, received: 1 })
    await follower.follow(...events)
    expect({ totals: await totals(), counts: await counts() }).toEqual(before)
  })

  it('lists the hundred inboxes with the fewest messages of a thousand', async () => {
    const ids = Array.from({ length: 1_000 }, (_, n) => inboxIdIn(1, n))
    const made = ids.map((inboxId) => makeInbox(inboxId, run))
    const mails = ids.slice(0, 950).map((inboxId, n) => {
      const bytes = Buffer.alloc(16)
      bytes.writeUInt32BE(n + 1)
      return mail(inboxId, idFromBytes('msg', bytes))
    })
    await follow(1, made, mails)
    expect(await totals()).toEqual({ inboxes: 1_000, received: 950 })
    expect(await counts({ to: 1 })).toEqual(ids.slice(950).map((inboxId) => [inboxId, 0]))
    expect((await counts()).slice(48, 52)).toEqual([
      [ids[998], 0],
      [ids[999], 0],
      [ids[0], 1],
      [ids[1], 1],
    ])
  })
}
