import type { ApiKeyIssued } from '#libs/domain/account/events.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { FACTS } from '#libs/domain/webhook/webhook.test-support.js'
import { accountSliceBefore } from './projections.js'
import { inboxes, messages } from './tables.js'
import {
  followAccounts,
  Follower,
  followerOf,
  inboxIdIn,
  LOG_ID,
  mail,
  makeInbox,
  type ReadModelHarness,
} from './read-model-harness.contract.js'

const TOPIC = 'inbox-events'
const [id, otherId] = [inboxIdIn(1), inboxIdIn(2)]
const accountId = idFromBytes('acc', Buffer.alloc(16, 9))
const opened = {
  type: 'AccountOpened',
  accountId,
  name: 'Acme',
  plan: 'pro',
  limits: null,
  openedAt: minute(0),
} as const
const keyId = idFromBytes('key', Buffer.alloc(16, 9))
const issued: ApiKeyIssued = {
  type: 'ApiKeyIssued',
  accountId,
  keyId,
  name: 'key',
  environment: 'staging',
  scopes: ['admin'],
  rateLimit: null,
  secretHash: 'a'.repeat(64),
  prefix: 'mf_staging_',
  expiresAt: null,
  createdBy: null,
  owner: 'service',
  issuedAt: minute(1),
}

const webhookId = idFromBytes('whk', Buffer.alloc(16, 9))
const registered = {
  ...FACTS,
  type: 'WebhookRegistered',
  accountId,
  webhookId,
  inboxId: id,
  registeredAt: minute(2),
} as const
const registeredForAll = {
  ...registered,
  webhookId: idFromBytes('whk', Buffer.alloc(16, 10)),
  inboxId: null,
} as const

export function describeProjectionStore(
  name: string,
  make: () => Promise<ReadModelHarness> | ReadModelHarness,
): void {
  describe(`${name} as a projection store`, () => {
    let harness: ReadModelHarness

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    const progressOf = (partition: number) => harness.queries.progress({ topic: TOPIC, partition })

    let leaseMinute = 0

    /** Everything that queries show of an inbox with one message. */
    async function shownOf(inboxId: typeof id, number: number) {
      const key = { inboxId, messageId: messageId(number) }
      const { queries } = harness
      const row = await queries.inbox(inboxId)
      const { accountId: account, environment, address } = makeInbox(inboxId)
      const list = {
        accountId: account,
        environment,
        state: 'active',
        labels: [],
        after: null,
        limit: 10,
      } as const
      const listed = await queries.listInboxes({ ...list, order: 'asc', now: minute(2) })
      return {
        exists: row !== null,
        isAtAddress: (await queries.inboxAt(address))?.inbox.id === inboxId,
        isListed: listed.some((inbox) => inbox.id === inboxId),
        // An hour later each time, when the previous lease has ended.
        isDue: (await queries.leaseDue({ now: minute((leaseMinute += 60)), limit: 10 })).includes(inboxId),
        messages: await queries.listMessages({ inboxId, order: 'asc', from: 0, to: 1_000, limit: 10 }),
        message: await queries.message(key),
        body: (await queries.sealedParts(key, 1))?.body ?? null,
        raw: await queries.raw(key),
      }
    }

    const nothing = {
      exists: false,
      isAtAddress: false,
      isListed: false,
      isDue: false,
      messages: [],
      message: null,
      body: null,
      raw: null,
    }

    describe('beginning', () => {
      it('starts empty views at the first record, with the current end as the target', async () => {
        expect(await progressOf(1)).toBeNull()
        const follower = new Follower(harness.store, 1)
        expect(await follower.begin({ first: 5, end: 9 })).toBe(5)
        expect(await progressOf(1)).toMatchObject({
          topic: TOPIC,
          partition: 1,
          logId: LOG_ID,
          position: 5,
          target: 9,
        })
        expect(await progressOf(2)).toBeNull()
      })

      it('continues at the position of views of the same log, with a new target', async () => {
        const follower = await followerOf(harness.store, 1)
        await follower.follow(makeInbox(id), mail(id, messageId(1)))
        const begunAtMs = (await progressOf(1))?.begunAtMs ?? NaN
        const successor = new Follower(harness.store, 1)
        expect(await successor.begin({ end: 7 })).toBe(2)
        expect((await progressOf(1))?.begunAtMs).toBeGreaterThan(begunAtMs)
        expect(await progressOf(1)).toMatchObject({ position: 2, target: 7 })
        expect(await successor.begin({ end: 2 })).toBe(2)
        expect(await shownOf(id, 1)).toMatchObject({ exists: true, isListed: true, isAtAddress: true })
      })

      it('continues at the log’s first record if the views are before it', async () => {
        const follower = await followerOf(harness.store, 1)
        await follower.follow(makeInbox(id))
        expect(await follower.begin({ first: 4 })).toBe(4)
        expect(await harness.queries.inbox(id)).not.toBeNull()
      })

      it('does not undo a step that is applied at the same time', async () => {
        const { store } = harness
        const follower = await followerOf(store, 1)
        for (let turns = 0; turns < 20; turns += 1) {
          const from = await follower.begin()
          const applied = store.apply({ ...(await follower.stepOf()), to: from + 1 })
          for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate)
          await Promise.all([applied, follower.begin()])
          expect(await progressOf(1)).toMatchObject({ position: from + 1 })
        }
      })

      test.each([
        { what: 'of another log', range: { logId: 'another-log', first: 3 } },
        { what: 'past the log’s end', range: { first: 1, end: 1 } },
      ])('empties views $what, but not those of other partitions', async ({ range }) => {
        const [follower, other] = await Promise.all(
          [1, 2].map((partition) => followerOf(harness.store, partition)),
        )
        await follower?.follow(makeInbox(id), mail(id, messageId(1)))
        await other?.follow(makeInbox(otherId), mail(otherId, messageId(2)))
        expect(await follower?.begin(range)).toBe(range.first)
        expect(await progressOf(1)).toMatchObject({ position: range.first })
        expect(await progressOf(2)).toMatchObject({ position: 2 })
        expect(await shownOf(id, 1)).toEqual(nothing)
        expect(await shownOf(otherId, 2)).toMatchObject({
          exists: true,
          isAtAddress: true,
          isListed: true,
          isDue: true,
        })
        expect(await harness.queries.raw({ inboxId: otherId, messageId: messageId(2) })).not.toBeNull()
      })

      it('allows emptied views to be rebuilt unchanged', async () => {
        const follower = await followerOf(harness.store, 1)
        await follower.follow(makeInbox(id), mail(id, messageId(1)))
        const before = await shownOf(id, 1)
        await follower.begin({ logId: 'another-log' })
        await follower.follow(makeInbox(id), mail(id, messageId(1)))
        expect(before).toMatchObject({ exists: true, isDue: true })
        expect(await shownOf(id, 1)).toEqual(before)
      })

      it('empties accounts without inboxes', async () => {
        const follower = await followerOf(harness.store, 1)
        await follower.follow(makeInbox(id))
        await followAccounts(harness.store, opened, issued, registered, registeredForAll)
        expect(await harness.accounts.account(accountId)).not.toBeNull()
        await harness.store.begin('another-log', { topic: 'account-events', partition: 0, first: 0, end: 1 })
        expect(await harness.accounts.account(accountId)).toBeNull()
        expect(await accountSliceBefore(harness.store, { accountId, keyId, webhookId })).toEqual({
          account: null,
          key: null,
          webhook: null,
          member: null,
          domain: null,
          holder: null,
        })
        const { environment } = registered
        expect(await harness.webhooks.webhooksFor([{ inboxId: id, accountId, environment }])).toEqual([])
        for (const scope of [{ inboxId: id }, { accountId, environment }]) {
          const all = { order: 'asc', after: null, limit: 9 } as const
          expect(await harness.webhooks.listWebhooks(scope, all)).toEqual([])
        }
        expect(await harness.accounts.keyByHash(issued.secretHash)).toBeNull()
        expect(await harness.accounts.listAccounts({ order: 'asc', after: null, limit: 9 })).toEqual([])
        expect(await harness.accounts.activeKeys(accountId)).toEqual([])
        await followAccounts(harness.store, opened)
        expect(await harness.accounts.listKeys(accountId, { order: 'asc', after: null, limit: 9 })).toEqual(
          [],
        )
        expect(await harness.queries.inbox(id)).not.toBeNull()
      })
    })

    describe('a step', () => {
      it('is applied with its changes, contents and position', async () => {
        const follower = await followerOf(harness.store, 1)
        expect(await follower.follow(makeInbox(id), mail(id, messageId(1)))).toBe('applied')
        expect(await progressOf(1)).toMatchObject({ position: 2 })
        const { raw, body, messages } = await shownOf(id, 1)
        expect(Buffer.from(raw ?? []).toString()).toBe(`raw of ${messageId(1)}`)
        expect(Buffer.from(body ?? []).toString()).toBe(`body of ${messageId(1)}`)
        expect(messages).toHaveLength(1)
      })

      it('returns its stored rows to the next step', async () => {
        const follower = await followerOf(harness.store, 1)
        const one = mail(id, messageId(1))
        const step = await follower.stepOf(makeInbox(id), one)
        await follower.follow(makeInbox(id), one)
        const put = step.changes.find(({ table }) => table === inboxes)
        const row = put !== undefined && 'row' in put && typeof put.row === 'object' ? put.row.put : null
        const inboxKeys = [otherId, id].map((key) => ({ owner: null, key }))
        expect(await harness.store.rows(inboxes, inboxKeys)).toEqual([null, row])
        const keys = [1, 2].map((number) => ({ owner: id, key: messageId(number) }))
        expect(await harness.store.rows(messages, keys)).toEqual([
          {
            message: { state: 'present', id: one.messageId, receivedAt: one.receivedAt, size: one.size },
            offset: 1,
          },
          null,
        ])
      })

      it('is not applied if the views are at another position or were never begun', async () => {
        const follower = await followerOf(harness.store, 1)
        await follower.follow(makeInbox(id))
        const step = await follower.stepOf(mail(id, messageId(1)))
        for (const from of [0, 2]) {
          expect(await harness.store.apply({ ...step, from, to: 9 })).toEqual({ position: 1 })
        }
        const foreign = await new Follower(harness.store, 2).stepOf(makeInbox(otherId))
        expect(await harness.store.apply(foreign)).toBe('absent')
        expect(await progressOf(1)).toMatchObject({ position: 1 })
        expect(await progressOf(2)).toBeNull()
        expect(await shownOf(id, 1)).toMatchObject({ messages: [], message: null, body: null, raw: null })
        expect(await harness.queries.inbox(otherId)).toBeNull()
      })

      it('is applied once if several are tried concurrently from one position', async () => {
        const follower = await followerOf(harness.store, 1)
        await follower.follow(makeInbox(id))
        const steps = await Promise.all(
          [1, 2, 3].map((number) => follower.stepOf(mail(id, messageId(number)))),
        )
        const outcomes = await Promise.all(steps.map((step) => harness.store.apply(step)))
        expect(outcomes.filter((outcome) => outcome === 'applied')).toHaveLength(1)
        expect(outcomes.filter((outcome) => outcome !== 'applied')).toEqual([
          { position: 2 },
          { position: 2 },
        ])
        const { messages } = await shownOf(id, 1)
        expect(messages).toHaveLength(1)
        const row = await harness.queries.inbox(id)
        expect(row?.inbox.messageCount).toBe(1)
      })

      it('may change nothing but the position', async () => {
        const follower = await followerOf(harness.store, 1)
        const step = await follower.stepOf()
        expect(await harness.store.apply({ ...step, to: 40 })).toBe('applied')
        expect(await progressOf(1)).toMatchObject({ position: 40 })
        expect(await follower.begin({ logId: LOG_ID })).toBe(40)
      })
    })
  })
}
