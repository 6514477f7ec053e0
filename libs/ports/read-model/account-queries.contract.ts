import type { AccountEvent, AccountOpened, ApiKeyIssued } from '#libs/domain/account/events.js'
import { idFromBytes, type AccountId, type KeyId } from '#libs/domain/ids/typeid.js'
import { minute } from '#libs/domain/inbox/inbox.test-support.js'
import { followAccounts, type ReadModelHarness } from './read-model-harness.contract.js'

const accountIdOf = (n: number): AccountId => idFromBytes('acc', Buffer.alloc(16, n))
const keyIdOf = (n: number): KeyId => idFromBytes('key', Buffer.alloc(16, n))
const accountId = accountIdOf(9)
const hash = (digit: string) => digit.repeat(64)

function opened(id = accountId): AccountOpened {
  return {
    type: 'AccountOpened',
    accountId: id,
    name: 'Acme',
    plan: 'pro',
    limits: null,
    openedAt: minute(0),
  }
}

function issued(n: number, facts: Partial<ApiKeyIssued> = {}): ApiKeyIssued {
  return {
    type: 'ApiKeyIssued',
    accountId,
    keyId: keyIdOf(n),
    name: `key ${n}`,
    environment: 'staging',
    scopes: ['inboxes', 'audit'],
    rateLimit: n * 10,
    secretHash: hash(n.toString(16)),
    prefix: 'mf_staging_',
    expiresAt: null,
    owner: 'service',
    createdBy: keyIdOf(1),
    issuedAt: minute(n),
    ...facts,
  }
}

const revoked = (n: number) =>
  ({
    type: 'ApiKeyRevoked',
    accountId,
    keyId: keyIdOf(n),
    revokedBy: keyIdOf(1),
    revokedAt: minute(50),
  }) as const

const rotated = (n: number, rotation: number, digit: string) =>
  ({
    type: 'ApiKeyRotated',
    accountId,
    keyId: keyIdOf(n),
    rotation,
    secretHash: hash(digit),
    prefix: 'mf_staging_new',
    expiresAt: null,
    graceEndsAt: minute(60),
    rotatedAt: minute(40),
  }) as const

export function describeAccountQueries(harness: () => ReadModelHarness): void {
  it('show the console sessions of an account', async () => {
    const { store, accounts } = harness()
    const [link, session] = [1, 2].map((n) => idFromBytes('ses', Buffer.alloc(16, n)))
    if (link === undefined || session === undefined) throw new Error('no ids')
    const times = { createdAt: minute(1), expiresAt: minute(11) }
    const facts = {
      accountId,
      createdBy: keyIdOf(1),
      memberId: null,
      offeredBy: null,
      linkHash: hash('a'),
      ...times,
    }
    const start = {
      accountId,
      startedBy: keyIdOf(2),
      memberId: null,
      isIdentified: false,
      secretHash: hash('b'),
      startedAt: minute(2),
    }
    await followAccounts(
      store,
      opened(),
      { type: 'ConsoleLinkCreated', sessionId: link, ...facts },
      { type: 'ConsoleSessionStarted', sessionId: session, ...start, expiresAt: minute(720) },
      { type: 'ConsoleSessionEnded', accountId, sessionId: session, endedAt: minute(3) },
    )
    expect((await accounts.account(accountId))?.consoleSessions).toEqual([
      {
        id: link,
        keyId: keyIdOf(1),
        memberId: null,
        offeredBy: null,
        isIdentified: false,
        state: 'offered',
        secretHash: hash('a'),
        ...times,
      },
      {
        ...{
          id: session,
          keyId: keyIdOf(2),
          memberId: null,
          offeredBy: null,
          isIdentified: false,
          state: 'ended',
          secretHash: hash('b'),
        },
        ...{ createdAt: minute(2), expiresAt: minute(720) },
      },
    ])
  })

  it('list members and invitations, and find the member of a personal key', async () => {
    const { store, accounts } = harness()
    const memberIdOf = (n: number) => idFromBytes('mem', Buffer.alloc(16, n))
    const invited = (n: number): AccountEvent => ({
      ...{ type: 'MemberInvited', accountId, memberId: memberIdOf(n), email: `${n}@example.com` },
      ...{ role: 'developer', environments: null, readsMail: true, tokenHash: hash('d') },
      ...{ usageKeyId: keyIdOf(1), invitedBy: keyIdOf(1), invitedAt: minute(n), expiresAt: minute(99) },
    })
    const session = {
      id: idFromBytes('ses', Buffer.alloc(16, 9)),
      secretHash: hash('e'),
      expiresAt: minute(9),
    }
    const about = (n: number, revision: number) => ({ accountId, memberId: memberIdOf(n), revision })
    const identity = { issuer: 'https://login.example.com', hash: hash('f') }
    const joined = (n: number): AccountEvent => ({
      ...{ type: 'MemberJoined', ...about(n, 1), session, identity, joinedAt: minute(n) },
    })
    const personal = issued(1, { owner: 'personal', createdBy: memberIdOf(1) })
    const other = accountIdOf(8)
    const foreign: AccountEvent = { ...invited(5), accountId: other }
    const revoked = { type: 'InvitationRevoked', ...about(4, 1), revokedBy: keyIdOf(1) } as const
    await followAccounts(store, opened(), opened(other), ...[1, 2, 3, 4].map(invited), foreign)
    await followAccounts(store, joined(1), joined(2), { ...revoked, revokedAt: minute(5) }, personal)
    const all = { order: 'desc', after: null, limit: 10 } as const
    const idsIn = async (state: 'active' | 'invited') =>
      (await accounts.listMembers(accountId, { ...all, state })).map(({ id }) => id)
    expect(await idsIn('active')).toEqual([memberIdOf(2), memberIdOf(1)])
    expect(await idsIn('invited')).toEqual([memberIdOf(3)])
    expect((await accounts.memberLookups(accountId)).toSorted()).toEqual(
      [1, 2, 3].map((n) => `${n}@example.com`),
    )
    const found = await accounts.keyByHash(hash('1'))
    expect(found?.member).toMatchObject({ id: memberIdOf(1), state: 'active', joinedAt: minute(1) })
    const idsOf = (members: readonly { id: string }[]) => members.map(({ id }) => id)
    expect(idsOf(await accounts.people('active', [identity.hash]))).toEqual([memberIdOf(1), memberIdOf(2)])
    expect(await accounts.people('active', [hash('0')])).toEqual([])
    expect(idsOf(await accounts.people('invited', ['3@example.com', '1@example.com']))).toEqual([
      memberIdOf(3),
    ])
    expect(idsOf(await accounts.people('invited', [hash('7'), '5@example.com']))).toEqual([memberIdOf(5)])
    expect(await accounts.people('invited', ['1@example.com'])).toEqual([])
    const removed = { type: 'MemberRemoved', ...about(1, 2), removedBy: memberIdOf(2) } as const
    await followAccounts(store, { ...removed, removedAt: minute(6) })
    expect(await idsIn('active')).toEqual([memberIdOf(2)])
    expect(idsOf(await accounts.people('active', [identity.hash]))).toEqual([memberIdOf(2)])
    for (const name of [identity.hash, '1@example.com']) {
      expect(idsOf(await accounts.people('removed', [name]))).toEqual([memberIdOf(1)])
    }
    expect((await accounts.keyByHash(hash('1')))?.member).toMatchObject({ state: 'removed' })
  })

  it('find a key and its account by the hash of its secret', async () => {
    const { store, accounts } = harness()
    await followAccounts(store, opened(), issued(1), issued(2))
    const { type: _type, keyId: id, ...keyFacts } = issued(2)
    const key = { id, ...keyFacts, rotation: 0, former: null, revokedAt: null, expiredAt: null, notices: [] }
    const facts = { name: 'Acme', plan: 'pro', limits: null, openedAt: minute(0) }
    const account = {
      id: accountId,
      ...facts,
      consoleSessions: [],
      owners: [],
      defaultFaults: {},
      quotas: {},
      suspendedAt: null,
      closed: null,
      requiresProvider: false,
      erasedAt: null,
    }
    expect(await accounts.keyByHash(hash('2'))).toEqual({ account, key, member: null })
    expect((await accounts.keyByHash(hash('1')))?.key.name).toBe('key 1')
    expect(await accounts.keyByHash(hash('c'))).toBeNull()
    expect(await accounts.key(id)).toEqual(key)
    expect(await accounts.key(keyIdOf(3))).toBeNull()
    expect(await accounts.account(accountId)).toEqual(account)
    expect(await accounts.account(accountIdOf(8))).toBeNull()
  })

  it('ignore a key that was issued before its account was opened', async () => {
    const { store, accounts } = harness()
    await followAccounts(store, issued(1), opened())
    expect(await accounts.keyByHash(hash('1'))).toBeNull()
    expect(await accounts.activeKeys(accountId)).toEqual([])
  })

  it('find a key by each secret that it has had, with its current state', async () => {
    const { store, accounts } = harness()
    await followAccounts(store, opened(), issued(1), rotated(1, 1, 'a'), rotated(1, 2, 'b'), revoked(1))
    for (const digit of ['1', 'a', 'b']) {
      const found = await accounts.keyByHash(hash(digit))
      expect(found?.key).toMatchObject({
        id: keyIdOf(1),
        secretHash: hash('b'),
        rotation: 2,
        revokedAt: minute(50),
      })
    }
  })

  it('lease each key with a notice or an end that is due to one process, until it is recorded', async () => {
    const { store, accounts } = harness()
    const DAY = 24 * 60
    const expiresAt = minute(40 * DAY)
    const ids = { accountId, keyId: keyIdOf(1) }
    const follow = async (end: number, ...events: AccountEvent[]) => {
      await followAccounts(store, ...events)
      await store.begin('the-log', { topic: 'account-events', partition: 0, first: 0, end })
    }
    const lease = async (atMinute: number) =>
      (await accounts.leaseDueKeys({ now: minute(atMinute), leaseMs: 60_000, limit: 9 })).map(({ id }) => id)
    await follow(3, opened(), issued(1, { expiresAt }), issued(2))
    expect(await lease(10 * DAY - 1)).toEqual([])
    expect(await lease(10 * DAY)).toEqual([keyIdOf(1)])
    expect(await lease(10 * DAY)).toEqual([])
    await follow(4, { type: 'ApiKeyExpiring', ...ids, expiresAt, daysLeft: 30, notifiedAt: minute(10 * DAY) })
    expect(await lease(11 * DAY)).toEqual([])
    expect(await lease(37 * DAY)).toEqual([keyIdOf(1)])
    await follow(5, { type: 'ApiKeyExpired', ...ids, expiredAt: expiresAt })
    expect(await lease(50 * DAY)).toEqual([])
    expect((await accounts.activeKeys(accountId)).map(({ id }) => id)).toEqual([keyIdOf(2)])
  })

  it('show the current plan and limits of an account', async () => {
    const { store, accounts } = harness()
    const limits = { requestsPerMinute: 7, retention: { text: '7d', ms: 604_800_000 }, maxMessages: 3 }
    const changed = { type: 'PlanChanged', accountId, plan: 'enterprise', limits } as const
    await followAccounts(store, opened(), issued(1), { ...changed, changedAt: minute(5) })
    expect(await accounts.account(accountId)).toMatchObject({ plan: 'enterprise', limits })
    expect((await accounts.keyByHash(hash('1')))?.account).toMatchObject({ plan: 'enterprise', limits })
  })

  it('list accounts in order, page by page', async () => {
    const { store, accounts } = harness()
    const ids = [1, 2, 3, 4].map(accountIdOf)
    await followAccounts(store, ...ids.map((id) => opened(id)))
    const list = async (order: 'asc' | 'desc', after: AccountId | null, limit = 9) =>
      (await accounts.listAccounts({ order, after, limit })).map(({ id }) => id)
    expect(await list('asc', null)).toEqual(ids)
    expect(await list('desc', null)).toEqual(ids.toReversed())
    expect(await list('asc', null, 2)).toEqual(ids.slice(0, 2))
    expect(await list('asc', accountIdOf(2))).toEqual(ids.slice(2))
    expect(await list('desc', accountIdOf(3), 1)).toEqual([accountIdOf(2)])
    expect(await list('desc', accountIdOf(1))).toEqual([])
  })

  it("list an account's keys in order, page by page, including revoked ones", async () => {
    const { store, accounts } = harness()
    const other = accountIdOf(10)
    const ids = [1, 2, 3].map(keyIdOf)
    await followAccounts(
      store,
      opened(),
      opened(other),
      ...[1, 2, 3].map((n) => issued(n)),
      issued(4, { accountId: other }),
      revoked(2),
    )
    const list = async (order: 'asc' | 'desc', after: KeyId | null, limit = 9) =>
      (await accounts.listKeys(accountId, { order, after, limit })).map(({ id }) => id)
    expect(await list('asc', null)).toEqual(ids)
    expect(await list('desc', null)).toEqual(ids.toReversed())
    expect(await list('asc', keyIdOf(1), 1)).toEqual([keyIdOf(2)])
    expect(await list('desc', keyIdOf(2))).toEqual([keyIdOf(1)])
    const ofOther = await accounts.listKeys(other, { order: 'asc', after: null, limit: 9 })
    expect(ofOther.map(({ id }) => id)).toEqual([keyIdOf(4)])
    expect(await accounts.listKeys(accountIdOf(11), { order: 'asc', after: null, limit: 9 })).toEqual([])
  })

  it("list an account's keys that are not revoked", async () => {
    const { store, accounts } = harness()
    const other = accountIdOf(10)
    const production = issued(3, { environment: 'production', scopes: ['admin'] })
    const foreign = issued(4, { accountId: other })
    const events = [opened(), opened(other), issued(1), issued(2), production, foreign, revoked(2)]
    await followAccounts(store, ...events)
    expect(await accounts.activeKeys(accountId)).toEqual([
      { id: keyIdOf(1), environment: 'staging', scopes: ['inboxes', 'audit'], createdBy: keyIdOf(1) },
      { id: keyIdOf(3), environment: 'production', scopes: ['admin'], createdBy: keyIdOf(1) },
    ])
  })
}
