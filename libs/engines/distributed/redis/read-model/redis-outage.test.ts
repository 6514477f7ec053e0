import { deleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { startRedis, type RedisServer } from '#test/harness/redis.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { accountSliceBefore } from '#libs/ports/read-model/projections.js'
import { inboxes, messageKey, messages } from '#libs/ports/read-model/tables.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/view-store.js'
import {
  type Follower,
  followerOf,
  inboxIdIn,
  LOG_ID,
  mail,
  makeInbox,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { makeReadModel, type RedisHarness } from './redis-read-model-harness.contract.js'

/** Longer than the timeout of all commands but those of a step. */
const PAUSED_MS = 3_500
const UNAVAILABLE_WITHIN_MS = 5_000
const id = inboxIdIn(1)
const key = { inboxId: id, messageId: messageId(1) }
const webhookId = idFromBytes('whk', Buffer.alloc(16, 1))
const partition = { topic: 'inbox-events', partition: 1 } as const

describeWith('redis-server')('views in an unavailable Redis', () => {
  let server: RedisServer
  let client: RedisClient
  let bulk: RedisClient
  let harness: RedisHarness
  let follower: Follower

  beforeEach(async () => {
    server = await startRedis()
    const reaching = { urls: [server.url], name: 'mayfly-test', onError: () => undefined }
    client = await openRedis(reaching)
    bulk = await openRedis({ ...reaching, isForBulk: true })
    harness = makeReadModel(client, bulk)
    follower = await followerOf(harness.store, 1)
    await follower.follow(makeInbox(id))
  })
  afterEach(async () => {
    client.disconnect()
    bulk.disconnect()
    await server.dispose()
  })

  /** Calls every method of the store and the queries at once. */
  async function callAll() {
    const { store, queries, accounts, webhooks } = harness
    const { accountId, keyId, environment, address } = makeInbox(id)
    const list = { accountId, environment, labels: [], order: 'asc', after: null, limit: 10 } as const
    const step = { ...partition, from: 1, to: 2, changes: [] }
    const parts = { body: Buffer.from('body'), raw: Buffer.from('raw') }
    const content = { table: messages, key: messageKey(key), parts, expiresAt: minute(1) }
    const calls: Record<string, Promise<unknown>> = {
      begin: store.begin(LOG_ID, { ...partition, first: 0, end: 9 }),
      inboxes: store.rows(inboxes, [{ owner: null, key: id }]),
      messages: store.rows(messages, [messageKey(key)]),
      accountSlice: accountSliceBefore(store, { accountId }),
      apply: store.apply({ ...step, contents: [] }),
      applyWithContent: store.apply({ ...step, contents: [content] }),
      progress: queries.progress(partition),
      inbox: queries.inbox(id),
      inboxAt: queries.inboxAt(address),
      listInboxes: queries.listInboxes({ ...list, state: 'active', now: minute(1) }),
      listExpired: queries.listInboxes({ ...list, state: 'expired', now: minute(1) }),
      message: queries.message(key),
      listMessages: queries.listMessages({ inboxId: id, order: 'asc', from: 0, to: 9, limit: 10 }),
      sealedParts: queries.sealedParts(key, 1),
      raw: queries.raw(key),
      keyByHash: accounts.keyByHash('a'.repeat(64)),
      account: accounts.account(accountId),
      listAccounts: accounts.listAccounts({ order: 'asc', after: null, limit: 10 }),
      key: accounts.key(keyId),
      listKeys: accounts.listKeys(accountId, { order: 'asc', after: null, limit: 10 }),
      activeKeys: accounts.activeKeys(accountId),
      webhook: webhooks.webhook(webhookId),
      listWebhooks: webhooks.listWebhooks({ inboxId: id }, { order: 'asc', after: null, limit: 10 }),
      webhooksFor: webhooks.webhooksFor([{ inboxId: id, accountId, environment }]),
      leaseDue: queries.leaseDue({ now: minute(1), limit: 10 }),
      countActive: queries.countActive(),
    }
    const outcomes = await Promise.allSettled(Object.values(calls))
    return outcomes.map((outcome, index) => ({
      method: Object.keys(calls)[index],
      isUnavailable: outcome.status === 'rejected' && outcome.reason instanceof ReadModelUnavailableError,
    }))
  }

  async function expectUnavailable() {
    const started = performance.now()
    const outcomes = await callAll()
    expect(outcomes.filter(({ isUnavailable }) => !isUnavailable)).toEqual([])
    expect(performance.now() - started).toBeLessThan(UNAVAILABLE_WITHIN_MS)
  }

  /** Whether both connections are back. */
  const isBack = () =>
    Promise.all([harness.accounts.keyByHash('a'.repeat(64)), bulk.ping()]).then(
      () => true,
      () => false,
    )

  it('are unavailable within seconds while it hangs, and continue from their position afterwards', async () => {
    await server.kill('SIGSTOP')
    await expectUnavailable()
    await server.kill('SIGCONT')
    await until('Redis to answer', isBack)
    // A step without an answer may have been applied, so read the position of the views.
    const progress = await harness.queries.progress(partition)
    follower.position = progress?.position ?? 0
    expect(await follower.follow(mail(id, messageId(2)))).toBe('applied')
    expect((await harness.queries.inbox(id))?.inbox.messageCount).toBe(1)
  })

  it('remain unavailable in bounded time while it hangs', async () => {
    await server.kill('SIGSTOP')
    // Longer than the socket timeout, so that later rounds find a connection that is being opened.
    for (let round = 0; round < 4; round += 1) await expectUnavailable()
    await server.kill('SIGCONT')
    await until('Redis to answer', isBack)
    expect(await harness.queries.inbox(id)).not.toBeNull()
  })

  it('are unavailable while it is down, and empty once it is back without data', async () => {
    await server.kill('SIGKILL')
    await expectUnavailable()
    await server.restart()
    await until('Redis to answer', isBack)
    expect(await harness.queries.progress(partition)).toBeNull()
    expect(await follower.begin()).toBe(0)
    expect(await follower.follow(makeInbox(id), mail(id, messageId(1)))).toBe('applied')
    expect(await harness.queries.raw(key)).not.toBeNull()
  })

  it('store a mail whose content takes longer than the timeout of other commands', async () => {
    const step = await follower.stepOf(mail(id, messageId(1)))
    await client.call('CLIENT', 'PAUSE', String(PAUSED_MS), 'WRITE')
    expect(await harness.store.apply(step)).toBe('applied')
    expect(await harness.queries.raw(key)).not.toBeNull()
  })

  it('apply no step whose content was written to a node that was replaced', async () => {
    const replaced = await startRedis()
    const other = await openRedis({ urls: [replaced.url], name: 'mayfly-test', onError: () => undefined })
    const redirected = makeReadModel(client, other, harness.prefix)
    const step = await follower.stepOf(mail(id, messageId(1)))
    await expect(redirected.store.apply(step)).rejects.toThrow(ReadModelUnavailableError)
    expect(await harness.queries.progress(partition)).toMatchObject({ position: step.from })
    expect(await harness.store.apply(step)).toBe('applied')
    expect(await harness.queries.raw(key)).not.toBeNull()
    other.disconnect()
    await replaced.dispose()
  })

  it('are unavailable while its memory is full, and apply no part of a step', async () => {
    await client.config('SET', 'maxmemory', '1mb')
    const step = await follower.stepOf(mail(id, messageId(1)))
    await expect(harness.store.apply(step)).rejects.toThrow(ReadModelUnavailableError)
    expect(await harness.queries.progress(partition)).toMatchObject({ position: 1 })
    await client.config('SET', 'maxmemory', '0')
    expect(await harness.store.apply(step)).toBe('applied')
  })

  it('apply the end of an inbox while its memory is full', async () => {
    await follower.follow(mail(id, messageId(1)))
    await client.config('SET', 'maxmemory', '1mb')
    await expect(follower.follow(makeInbox(inboxIdIn(1, 7)))).rejects.toThrow(ReadModelUnavailableError)
    expect(await follower.follow({ ...deleted(minute(1)), inboxId: id })).toBe('applied')
    expect((await harness.queries.inbox(id))?.inbox.state).toBe('deleted')
    expect(await client.exists(`${harness.prefix}{p1}:raw:${messageId(1)}`)).toBe(0)
  })
})
