import type { AccountEvent, AccountOpened } from '#libs/domain/account/events.js'
import type { DomainChecked, DomainRegistered } from '#libs/domain/account/domain.js'
import { idFromBytes, type AccountId, type DomainId } from '#libs/domain/ids/typeid.js'
import { minute } from '#libs/domain/inbox/inbox.test-support.js'
import { accountSliceBefore } from './projections.js'
import { followAccounts, type ReadModelHarness } from './read-model-harness.contract.js'

const domainIdOf = (n: number): DomainId => idFromBytes('dom', Buffer.alloc(16, n))
const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const otherAccountId = idFromBytes('acc', Buffer.alloc(16, 2))

function opened(id: AccountId): AccountOpened {
  const facts = { name: 'Acme', plan: 'pro', limits: null, openedAt: minute(0) }
  return { type: 'AccountOpened', accountId: id, ...facts }
}

function registered(n: number, name: string, facts: Partial<DomainRegistered> = {}): DomainRegistered {
  return {
    ...{ type: 'DomainRegistered', accountId, domainId: domainIdOf(n), name, environment: 'staging' },
    ...{ isHosted: false, subdomains: false, catchAll: { action: 'create', duration: null, labels: {} } },
    ...{ token: `token${n}`, registeredAt: minute(n), ...facts },
  }
}

const VALID = { status: 'valid', found: ['token=1'] } as const
const MISSING = { status: 'missing', found: [] } as const

function checked(n: number, name: string, facts: Partial<DomainChecked> = {}): DomainChecked {
  const results = { ownership: VALID, mail: VALID, wildcard: VALID }
  const ids = { accountId, domainId: domainIdOf(n) }
  return { type: 'DomainChecked', ...ids, revision: 1, name, results, checkedAt: minute(60 + n), ...facts }
}

const removed = (n: number) =>
  ({ type: 'DomainRemoved', accountId, domainId: domainIdOf(n), removedAt: minute(90) }) as const

export function describeDomainQueries(harness: () => ReadModelHarness): void {
  const follow = (...events: AccountEvent[]) =>
    followAccounts(harness().store, opened(accountId), opened(otherAccountId), ...events)
  const holding = async (name: string) => (await harness().accounts.domainHolding(name))?.id ?? null
  const nameOf = async (n: number) => (await harness().accounts.domain(domainIdOf(n)))?.name ?? null

  it('find a domain as it was registered and checked', async () => {
    await follow(registered(1, 'acme.example'), checked(1, 'acme.example', { results: { mail: VALID } }))
    const { type: _type, domainId: id, registeredAt: createdAt, ...facts } = registered(1, 'acme.example')
    expect(await harness().accounts.domain(id)).toEqual({
      ...facts,
      ...{
        id,
        createdAt,
        state: 'pending',
        isNameTaken: false,
        revision: 1,
        failures: 0,
        failingSince: null,
      },
      checks: { ownership: MISSING, mail: VALID, wildcard: MISSING },
      ...{ verifiedAt: null, checkedAt: minute(61), lapsedAt: null, nextCheckAt: minute(73) },
    })
    expect(await nameOf(2)).toBeNull()
  })

  it('find the domain that holds a name, or its closest parent with subdomains', async () => {
    const wide = { subdomains: true }
    await follow(
      ...[registered(1, 'acme.example', wide), checked(1, 'acme.example')],
      ...[registered(2, 'eu.acme.example', wide), checked(2, 'eu.acme.example')],
      ...[registered(3, 'one.eu.acme.example'), checked(3, 'one.eu.acme.example')],
      ...[registered(4, 'pending.acme.example'), registered(5, 'k3v9.mayfly.test', { isHosted: true })],
    )
    const labels = (count: number) => 'x.'.repeat(count)
    for (const [name, n] of [
      ['acme.example', 1],
      ['eu.acme.example', 2],
      ['two.eu.acme.example', 2],
      ['one.eu.acme.example', 3],
      ['below.one.eu.acme.example', 2],
      ['pending.acme.example', 1],
      ['xacme.example', null],
      ['example', null],
      ['', null],
      ['k3v9.mayfly.test', 5],
      ['mayfly.test', null],
      ['below.k3v9.mayfly.test', null],
      [`${labels(120)}acme.example`, 1],
      [`acme.example${'.x'.repeat(120)}`, null],
    ] as const) {
      expect([name, await holding(name)]).toEqual([name, n === null ? null : domainIdOf(n)])
    }
  })

  it('find the domain that a name has passed to', async () => {
    await follow(
      ...[registered(1, 'acme.example'), registered(2, 'acme.example', { accountId: otherAccountId })],
      ...[checked(1, 'acme.example'), checked(2, 'acme.example')],
    )
    expect(await holding('acme.example')).toBe(domainIdOf(1))
    await follow(
      ...[opened(accountId), opened(otherAccountId)],
      checked(1, 'acme.example', { revision: 2, results: { ownership: MISSING } }),
      checked(2, 'acme.example', { revision: 2, accountId: otherAccountId }),
    )
    expect(await holding('acme.example')).toBe(domainIdOf(2))
    expect(await harness().accounts.domain(domainIdOf(1))).toMatchObject({ state: 'failed' })
  })

  it('find no removed domain, also if its registration is repeated', async () => {
    await follow(
      ...[registered(1, 'acme.example'), checked(1, 'acme.example'), removed(1)],
      ...[registered(1, 'acme.example'), checked(1, 'acme.example')],
    )
    const { accounts, store } = harness()
    expect(await nameOf(1)).toBeNull()
    expect(await holding('acme.example')).toBeNull()
    expect(await accounts.listDomains(accountId, { order: 'asc', after: null, limit: 9 })).toEqual([])
    expect(await accounts.domainNames(accountId)).toEqual([])
    expect(await accounts.leaseDueDomains({ now: minute(999), leaseMs: 1, limit: 9 })).toEqual([])
    expect(await accountSliceBefore(store, { accountId, domainId: domainIdOf(1) })).toMatchObject({
      domain: 'removed',
    })
  })

  it("list an account's domains in order, page by page, and all their names", async () => {
    const names = ['a.example', 'b.example', 'c.example']
    await follow(
      ...names.map((name, index) => registered(index + 1, name)),
      registered(4, 'd.example', { accountId: otherAccountId }),
    )
    const list = async (order: 'asc' | 'desc', after: DomainId | null, limit = 9) =>
      (await harness().accounts.listDomains(accountId, { order, after, limit })).map(({ name }) => name)
    expect(await list('asc', null)).toEqual(names)
    expect(await list('desc', null, 2)).toEqual(names.toReversed().slice(0, 2))
    expect(await list('asc', domainIdOf(1))).toEqual(names.slice(1))
    expect(await list('desc', domainIdOf(2))).toEqual(names.slice(0, 1))
    expect(await harness().accounts.domainNames(accountId)).toEqual(names)
  })

  it('lease each domain whose check is due to one process, earliest first', async () => {
    await follow(
      ...[registered(1, 'a.example'), registered(2, 'b.example'), registered(3, 'c.example')],
      ...[registered(4, 'd.example', { isHosted: true }), checked(1, 'a.example')],
    )
    const lease = async (atMinute: number, limit = 9) =>
      (await harness().accounts.leaseDueDomains({ now: minute(atMinute), leaseMs: 60_000, limit })).map(
        ({ name }) => name,
      )
    expect(await lease(1)).toEqual([])
    await harness().store.begin('the-log', { topic: 'account-events', partition: 0, first: 0, end: 7 })
    expect(await lease(1)).toEqual([])
    expect(await lease(3, 1)).toEqual(['b.example'])
    expect(await lease(3)).toEqual(['c.example'])
    expect(await lease(3)).toEqual([])
    expect(await lease(5)).toEqual(['b.example', 'c.example'])
    expect(await lease(61 + 24 * 60)).toEqual(['b.example', 'c.example', 'a.example'])
  })
}
