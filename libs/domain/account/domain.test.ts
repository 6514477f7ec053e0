import { specificationOf } from '#libs/domain/event-sourcing/specification.test-support.js'
import { idFromBytes, type AccountId, type DomainId } from '#libs/domain/ids/typeid.js'
import { REMOVED } from '#libs/domain/webhook/webhook.js'
import { ACCOUNT_ID, day } from './account.test-support.js'
import {
  decideDomain,
  evolveDomain,
  holdsName,
  notificationOf,
  type Domain,
  type DomainChecked,
  type DomainCommand,
  type DomainEntry,
  type DomainEvent,
  type DomainRegistered,
} from './domain.js'

const OTHER_ACCOUNT: AccountId = idFromBytes('acc', Buffer.alloc(16, 9))
const domainIdOf = (n: number): DomainId => idFromBytes('dom', Buffer.alloc(16, n))

type Domains = ReadonlyMap<DomainId, DomainEntry>

const { given, replay } = specificationOf({
  initial: new Map() as Domains,
  evolve(domains: Domains, event: DomainEvent): Domains {
    const domain = domains.get(event.domainId) ?? null
    const holder = holderOf(domains, 'acme.example')
    const after = evolveDomain({ domain, holder: holder?.id === event.domainId ? null : holder }, event)
    const all = new Map(domains).set(event.domainId, after.domain)
    return after.holder === null ? all : all.set(after.holder.id, after.holder)
  },
  decide: (domains, command: DomainCommand) => decideDomain(domains.get(command.domainId) ?? null, command),
})

function holderOf(domains: Domains, name: string): Domain | null {
  const all = [...domains.values()].filter((domain) => domain !== null && domain !== REMOVED)
  const holders = all.filter((domain) => domain.name === name && holdsName(domain))
  expect(holders.length).toBeLessThan(2)
  return holders[0] ?? null
}

const minutes = (count: number) => new Date(day(1).getTime() + count * 60_000)
const hours = (count: number) => minutes(60 * count)
const days = (count: number) => hours(24 * count)

const FACTS = {
  accountId: ACCOUNT_ID,
  name: 'acme.example',
  environment: 'staging',
  isHosted: false,
  subdomains: false,
  catchAll: { action: 'reject' },
  token: 'k3v9',
} as const

function registered(n = 1, facts: Partial<DomainRegistered> = {}): DomainRegistered {
  return { ...FACTS, type: 'DomainRegistered', domainId: domainIdOf(n), registeredAt: day(1), ...facts }
}

const VALID = { status: 'valid', found: [] } as const
const ABSENT = { status: 'missing', found: [] } as const
const ALL = { ownership: VALID, mail: VALID, wildcard: VALID }
const NONE = { ownership: ABSENT, mail: ABSENT, wildcard: ABSENT }

function checked(revision: number, results: DomainChecked['results'], checkedAt: Date, n = 1): DomainChecked {
  const ids = { accountId: ACCOUNT_ID, domainId: domainIdOf(n), name: 'acme.example' }
  return { type: 'DomainChecked', ...ids, revision, results, checkedAt }
}

function domainAfter(events: DomainEvent[], n = 1): Domain {
  const domain = replay(events).get(domainIdOf(n)) ?? null
  if (domain === null || domain === REMOVED) throw new Error('no domain')
  return domain
}

/** A domain, with one check after each time in minutes. */
const checkedAfter = (results: DomainChecked['results'], times: number[]) =>
  domainAfter([registered(), ...times.map((at, index) => checked(index + 1, results, minutes(at)))])

describe('a domain', () => {
  it('is checked at once, every minute for ten, and then less often, up to hourly', () => {
    expect(domainAfter([registered()])).toMatchObject({ state: 'pending', nextCheckAt: minutes(0) })
    for (const [at, next] of [
      [0, 1],
      [9, 10],
      [10, 12],
      [60, 72],
      [1440, 1500],
    ] as const) {
      expect(checkedAfter(NONE, [at])).toMatchObject({ state: 'pending', nextCheckAt: minutes(next) })
    }
  })

  it('fails if it is not verified within 72 hours, and may be verified later', () => {
    const failed = [registered(), checked(1, NONE, hours(71)), checked(2, NONE, hours(72))]
    expect(domainAfter(failed.slice(0, 2)).state).toBe('pending')
    expect(domainAfter(failed)).toMatchObject({ state: 'failed', nextCheckAt: null })
    expect(domainAfter([...failed, checked(3, ALL, hours(99))])).toMatchObject({
      ...{ state: 'verified', verifiedAt: hours(99), nextCheckAt: hours(123) },
    })
  })

  test.each([
    { records: ['ownership', 'mail'], subdomains: false, state: 'verified' },
    { records: ['ownership', 'mail'], subdomains: true, state: 'pending' },
    { records: ['ownership', 'mail', 'wildcard'], subdomains: true, state: 'verified' },
    { records: ['mail', 'wildcard'], subdomains: false, state: 'pending' },
    { records: ['ownership', 'wildcard'], subdomains: false, state: 'pending' },
  ])('with the records $records and subdomains $subdomains is $state', ({ records, subdomains, state }) => {
    const results = Object.fromEntries(records.map((name) => [name, VALID]))
    expect(domainAfter([registered(1, { subdomains }), checked(1, results, minutes(1))]).state).toBe(state)
  })

  it('keeps the last result of a record about which the name servers gave no clear answer', () => {
    const events = [registered(), checked(1, { ownership: VALID }, minutes(1)), checked(2, {}, minutes(2))]
    expect(domainAfter(events)).toMatchObject({
      checks: { ownership: VALID, mail: ABSENT },
      ...{ checkedAt: minutes(1), nextCheckAt: minutes(3) },
    })
    expect(domainAfter([...events, checked(3, { mail: VALID }, minutes(3))]).state).toBe('verified')
  })

  it('lapses after three failed checks in a row over two days, and comes back', () => {
    const verified = [registered(), checked(1, ALL, days(0))]
    const failing = [checked(2, NONE, days(1)), checked(3, NONE, days(2)), checked(4, NONE, days(3))]
    expect(domainAfter([...verified, ...failing.slice(0, 2)])).toMatchObject({
      state: 'verified',
      failures: 2,
    })
    const lapsed = [...verified, ...failing]
    expect(domainAfter(lapsed)).toMatchObject({
      ...{ state: 'lapsed', lapsedAt: days(3), verifiedAt: days(0), nextCheckAt: days(4) },
    })
    expect(domainAfter([...lapsed, checked(5, ALL, days(4))])).toMatchObject({
      ...{ state: 'verified', lapsedAt: null, verifiedAt: days(4), failures: 0, failingSince: null },
    })
    const checks = [checked(1, ALL, days(0)), ...failing, checked(5, NONE, days(4))]
    expect(checks.map((check) => notificationOf(domainAfter([...lapsed, check]), check))).toEqual([
      ...['domain.verified', null, null, 'domain.lapsed', null],
    ])
  })

  test.each([
    { what: 'within two days', next: [NONE, NONE, NONE], hoursBetween: 12 },
    { what: 'that are not in a row', next: [NONE, NONE, ALL, NONE, NONE], hoursBetween: 24 },
    { what: 'without a clear answer', next: [{}, {}, {}, {}], hoursBetween: 24 },
  ])('does not lapse after failed checks $what', ({ next, hoursBetween }) => {
    const checks = [ALL, ...next].map((results, index) =>
      checked(index + 1, results, hours(index * hoursBetween)),
    )
    expect(domainAfter([registered(), ...checks]).state).toBe('verified')
  })

  it('is verified at once if it is hosted, and never checked', () => {
    expect(domainAfter([registered(1, { isHosted: true })])).toMatchObject({
      ...{ state: 'verified', verifiedAt: day(1), nextCheckAt: null },
    })
  })

  it('is not registered again after its removal', () => {
    const removed = { type: 'DomainRemoved', accountId: ACCOUNT_ID, domainId: domainIdOf(1) } as const
    const events = [
      registered(),
      { ...removed, removedAt: minutes(1) },
      registered(),
      checked(1, ALL, minutes(2)),
    ]
    expect(replay(events).get(domainIdOf(1))).toBe(REMOVED)
  })

  it('ignores the second of two concurrent events', () => {
    const events = [registered(), checked(1, ALL, minutes(1)), checked(1, NONE, minutes(2))]
    expect(domainAfter(events).checks).toEqual(ALL)
  })
})

describe('a name', () => {
  const rival = registered(2, { accountId: OTHER_ACCOUNT })
  const statesAfter = (...events: DomainEvent[]) =>
    [1, 2].map((n) => domainAfter([registered(), rival, ...events], n).state)

  it('is held by the first domain that is verified', () => {
    expect(statesAfter(checked(1, ALL, minutes(1), 2), checked(1, ALL, minutes(2)))).toEqual([
      'pending',
      'verified',
    ])
  })

  it('is not blocked by a domain that is not verified', () => {
    expect(statesAfter(checked(1, { ownership: VALID }, minutes(1)), checked(1, ALL, minutes(2), 2))).toEqual(
      ['pending', 'verified'],
    )
  })

  it('passes to another domain that is verified while the TXT record of its holder is absent', () => {
    const absent = [checked(1, ALL, minutes(1)), checked(2, { ownership: ABSENT }, minutes(2))]
    const events = [...absent, checked(1, ALL, minutes(3), 2)]
    expect(statesAfter(...events)).toEqual(['failed', 'verified'])
    expect(statesAfter(...events, checked(3, ALL, minutes(4)))).toEqual(['failed', 'verified'])
  })

  it('stays with a lapsed domain whose TXT record is present', () => {
    const lapsing = [1, 2, 3].map((n) => checked(n + 1, { mail: ABSENT }, days(n)))
    const events = [checked(1, ALL, days(0)), ...lapsing, checked(1, ALL, days(4), 2)]
    expect(statesAfter(...events)).toEqual(['lapsed', 'failed'])
  })

  it('is free after the removal of its holder', () => {
    const removed = { type: 'DomainRemoved', accountId: ACCOUNT_ID, domainId: domainIdOf(1) } as const
    const domains = replay([
      ...[registered(), rival, checked(1, ALL, minutes(1)), { ...removed, removedAt: minutes(2) }],
      checked(1, ALL, minutes(3), 2),
    ])
    expect(holderOf(domains, 'acme.example')?.id).toBe(domainIdOf(2))
  })
})

describe('a command', () => {
  const { type: _type, registeredAt: _registeredAt, ...facts } = registered()
  const register = { type: 'RegisterDomain', ...facts, names: [], now: day(1) } as const
  const base = { accountId: ACCOUNT_ID, domainId: domainIdOf(1), now: day(2) }
  const change = { ...base, type: 'ChangeDomain' } as const
  const create = { action: 'create', duration: null, labels: { team: 'qa' } } as const

  it('registers a domain, once', () => {
    given().when(register).then([registered()])
    given(registered()).when(register).then([])
  })

  it('does not register a name that the account has', () => {
    given()
      .when({ ...register, names: ['acme.example'] })
      .thenRefused({ code: 'known-name' })
  })

  it('changes what differs', () => {
    const changed = { type: 'DomainChanged', accountId: ACCOUNT_ID, domainId: domainIdOf(1) } as const
    given(registered())
      .when({ ...change, subdomains: false, catchAll: create })
      .then([{ ...changed, revision: 1, subdomains: null, catchAll: create, changedAt: day(2) }])
    given(registered(1, { catchAll: create }))
      .when({ ...change, subdomains: null, catchAll: { ...create, labels: { team: 'qa' } } })
      .then([])
  })

  it('is refused for a domain that does not exist, is removed, or belongs to another account', () => {
    const removed = { type: 'DomainRemoved', accountId: ACCOUNT_ID, domainId: domainIdOf(1) } as const
    const remove = { ...base, type: 'RemoveDomain' } as const
    given().when(remove).thenRefused({ code: 'unknown-domain' })
    given(registered(), { ...removed, removedAt: day(2) })
      .when(remove)
      .thenRefused({ code: 'unknown-domain' })
    given(registered(1, { accountId: OTHER_ACCOUNT }))
      .when(remove)
      .thenRefused({ code: 'unknown-domain' })
    given(registered())
      .when(remove)
      .then([{ ...removed, removedAt: day(2) }])
  })
})
