import type { AccountEvent, AccountOpened } from '#libs/domain/account/events.js'
import { idFromBytes, type AccountId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { minute } from '#libs/domain/inbox/inbox.test-support.js'
import type { WebhookRegistered } from '#libs/domain/webhook/events.js'
import { REMOVED } from '#libs/domain/webhook/webhook.js'
import { FACTS, sealed } from '#libs/domain/webhook/webhook.test-support.js'
import type { WebhookedInbox } from './account-views.js'
import type { WebhookScope } from './tables.js'
import { accountSliceBefore } from './projections.js'
import { followAccounts, inboxIdIn, type ReadModelHarness } from './read-model-harness.contract.js'

const webhookIdOf = (n: number): WebhookId => idFromBytes('whk', Buffer.alloc(16, n))
const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const otherAccountId = idFromBytes('acc', Buffer.alloc(16, 2))
const [inboxId, otherInboxId] = [inboxIdIn(1), inboxIdIn(2)]
const environment = 'staging'

function opened(id: AccountId = accountId): AccountOpened {
  return {
    type: 'AccountOpened',
    accountId: id,
    name: 'Acme',
    plan: 'pro',
    limits: null,
    openedAt: minute(0),
  }
}

function registered(n: number, facts: Partial<WebhookRegistered> = {}): WebhookRegistered {
  const ids = { accountId, webhookId: webhookIdOf(n), environment, inboxId }
  return { ...FACTS, type: 'WebhookRegistered', ...ids, registeredAt: minute(n), ...facts }
}

const idsOf = (n: number) => ({ accountId, webhookId: webhookIdOf(n) })

const removed = (n: number) => ({ type: 'WebhookRemoved', ...idsOf(n), removedAt: minute(30) }) as const

const switched = (n: number, state: 'active' | 'disabled') =>
  ({ type: 'WebhookChanged', ...idsOf(n), url: null, events: null, state, changedAt: minute(20) }) as const

export function describeWebhookQueries(harness: () => ReadModelHarness): void {
  const follow = (...events: AccountEvent[]) =>
    followAccounts(harness().store, opened(), opened(otherAccountId), ...events)

  const numbersOf = (webhooks: readonly { id: WebhookId }[]) =>
    webhooks.map(({ id }) => [1, 2, 3, 4, 5, 6, 7, 8].find((n) => webhookIdOf(n) === id))

  const list = async (
    scope: WebhookScope,
    order: 'asc' | 'desc' = 'asc',
    after: WebhookId | null = null,
    limit = 9,
  ) => numbersOf(await harness().webhooks.listWebhooks(scope, { order, after, limit }))

  const activeFor = async (...inboxes: WebhookedInbox[]) =>
    numbersOf(await harness().webhooks.webhooksFor(inboxes)).toSorted()

  it('find a webhook as it was registered', async () => {
    const startFrom = minute(5)
    const positions = [
      { partition: 0, offset: 0 },
      { partition: 3, offset: 2 ** 40 },
    ]
    const facts = {
      inboxId: null,
      events: ['inbox.expired', 'message.received'],
      startFrom,
      positions,
    } as const
    await follow(registered(1, facts))
    const { type: _type, webhookId: id, registeredAt, ...rest } = registered(1, facts)
    const webhook = {
      id,
      ...rest,
      state: 'active',
      disabledReason: null,
      activeSince: registeredAt,
      former: null,
      rotation: 0,
      createdAt: registeredAt,
    }
    const { webhooks } = harness()
    expect(await webhooks.webhook(id)).toEqual(webhook)
    expect(await webhooks.webhook(webhookIdOf(2))).toBeNull()
  })

  it('count the webhooks of environments that an account has', async () => {
    const ofInbox = { inboxId: idFromBytes('inb', Buffer.alloc(16, 1)) }
    const ofEnvironment = [1, 2, 3].map((n) => registered(n, { inboxId: null }))
    await follow(...ofEnvironment, registered(4, ofInbox), removed(2))
    expect(await harness().webhooks.countWebhooks(accountId)).toBe(2)
    expect(await harness().webhooks.countWebhooks(otherAccountId)).toBe(0)
  })

  it('find a webhook with its changes', async () => {
    const url = 'http://other.example/'
    const graceEndsAt = minute(60)
    const rotated = {
      type: 'WebhookSecretRotated',
      ...idsOf(1),
      rotation: 1,
      secret: sealed(1),
      graceEndsAt,
      rotatedAt: minute(21),
    } as const
    await follow(registered(1), { ...switched(1, 'disabled'), url }, rotated)
    expect(await harness().webhooks.webhook(webhookIdOf(1))).toMatchObject({
      url,
      state: 'disabled',
      disabledReason: 'by-request',
      secret: sealed(1),
      former: { secret: sealed(0), graceEndsAt },
      rotation: 1,
    })
  })

  it('ignore a webhook that was registered before its account was opened', async () => {
    await followAccounts(harness().store, registered(1), opened())
    expect(await harness().webhooks.webhook(webhookIdOf(1))).toBeNull()
  })

  it('show nothing of a removed webhook, which is marked for the projection', async () => {
    await follow(registered(1), registered(2, { inboxId: null }), removed(1), removed(2))
    for (const n of [1, 2]) expect(await harness().webhooks.webhook(webhookIdOf(n))).toBeNull()
    expect(await list({ inboxId })).toEqual([])
    expect(await list({ accountId, environment })).toEqual([])
    expect(await activeFor({ inboxId, accountId, environment })).toEqual([])
    const key = { keyId: null, ...idsOf(1) }
    expect((await accountSliceBefore(harness().store, key)).webhook).toBe(REMOVED)
  })

  it('show nothing of a removed webhook whose registration is repeated', async () => {
    await follow(registered(1), removed(1), registered(1))
    expect(await harness().webhooks.webhook(webhookIdOf(1))).toBeNull()
    expect(await list({ inboxId })).toEqual([])
  })

  it('list those of one inbox or of an environment in order, page by page, including disabled ones', async () => {
    const all = [1, 2, 3].map((n) => registered(n))
    const forAll = [4, 5].map((n) => registered(n, { inboxId: null }))
    const others = [
      registered(6, { inboxId: otherInboxId }),
      registered(7, { inboxId: null, environment: 'staging-2' }),
      registered(8, { inboxId: null, accountId: otherAccountId }),
    ]
    await follow(...others, ...forAll, ...all, switched(2, 'disabled'), switched(5, 'disabled'))
    expect(await list({ inboxId })).toEqual([1, 2, 3])
    expect(await list({ inboxId }, 'desc')).toEqual([3, 2, 1])
    expect(await list({ inboxId }, 'asc', null, 2)).toEqual([1, 2])
    expect(await list({ inboxId }, 'asc', webhookIdOf(2), 2)).toEqual([3])
    expect(await list({ inboxId }, 'desc', webhookIdOf(2))).toEqual([1])
    expect(await list({ inboxId: otherInboxId })).toEqual([6])
    expect(await list({ accountId, environment })).toEqual([4, 5])
    expect(await list({ accountId, environment }, 'desc', webhookIdOf(5), 1)).toEqual([4])
    expect(await list({ accountId, environment: 'staging-2' })).toEqual([7])
    expect(await list({ accountId: otherAccountId, environment })).toEqual([8])
    expect(await list({ accountId, environment: 'stag' })).toEqual([])
  })

  it('find the active ones of some inboxes, each once', async () => {
    await follow(
      registered(1),
      registered(2),
      registered(3, { inboxId: otherInboxId }),
      registered(4, { inboxId: null }),
      registered(5, { inboxId: null }),
      registered(6, { inboxId: null, environment: 'staging-2' }),
      registered(7, { inboxId: null, accountId: otherAccountId }),
      switched(2, 'disabled'),
      switched(5, 'disabled'),
    )
    const [one, other] = [
      { inboxId, accountId, environment },
      { inboxId: otherInboxId, accountId, environment },
    ]
    expect(await activeFor()).toEqual([])
    expect(await activeFor(one)).toEqual([1, 4])
    expect(await activeFor(other)).toEqual([3, 4])
    expect(await activeFor(one, other, one)).toEqual([1, 3, 4])
    expect(await activeFor({ inboxId: inboxIdIn(3), accountId, environment: 'staging-2' })).toEqual([6])
    expect(await activeFor({ inboxId: inboxIdIn(3), accountId: otherAccountId, environment })).toEqual([7])
    const [whole] = await harness().webhooks.webhooksFor([other])
    expect(whole).toEqual(await harness().webhooks.webhook(whole?.id ?? webhookIdOf(8)))
  })

  it('find one that was enabled again', async () => {
    await follow(registered(1), switched(1, 'disabled'), switched(1, 'active'))
    expect(await activeFor({ inboxId, accountId, environment })).toEqual([1])
  })

  it('find those of more inboxes than fit into one query', async () => {
    const inboxIds = Array.from({ length: 1_200 }, (_, n) => inboxIdIn(n % 4, n))
    const chosen = [0, 499, 500, 1_199].flatMap((at) => inboxIds[at] ?? [])
    await follow(...chosen.map((id, index) => registered(index + 1, { inboxId: id })))
    expect(await activeFor(...inboxIds.map((id) => ({ inboxId: id, accountId, environment })))).toEqual([
      1, 2, 3, 4,
    ])
  })
}
