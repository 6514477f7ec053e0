import fc from 'fast-check'
import { idFromBytes, type KeyId } from '#libs/typeid/typeid.js'
import { anyAccountEvent, anyAccountHistory, anyAccountSequence } from './account-events.arbitrary.js'
import { evolve, type Account, type AccountSlice, type ApiKey } from './account.js'
import type { AccountEvent, AccountOpened, ApiKeyIssued } from './events.js'
import { PLAN_NAMES, PLANS } from './plan.js'
import { allows } from './scope.js'

interface AccountView {
  account: Account | null
  keys: ReadonlyMap<KeyId, ApiKey>
}

const NOTHING: AccountView = { account: null, keys: new Map() }

function replay(history: readonly AccountEvent[], before = NOTHING): AccountView {
  return history.reduce<AccountView>((view, event) => {
    const { account, key } = evolve(sliceFor(view, event), event)
    return { account, keys: key === null ? view.keys : new Map(view.keys).set(key.id, key) }
  }, before)
}

function sliceFor({ account, keys }: AccountView, event: AccountEvent): AccountSlice {
  return { account, key: 'keyId' in event ? (keys.get(event.keyId) ?? null) : null }
}

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const keyId = idFromBytes('key', Buffer.alloc(16, 2))
const day = (days: number) => new Date(Date.UTC(2026, 0, 1 + days))

const opened: AccountOpened = {
  type: 'AccountOpened',
  accountId,
  name: 'Acme',
  plan: 'pro',
  openedAt: day(0),
}

const issued: ApiKeyIssued = {
  type: 'ApiKeyIssued',
  accountId,
  keyId,
  name: 'CI',
  environment: 'staging',
  scopes: ['inboxes'],
  secretHash: 'ab'.repeat(32),
  prefix: 'mf_staging_k3v9',
  issuedAt: day(1),
}

describe('an account', () => {
  it('stands as it was opened, also where it is opened again', () => {
    const account = { id: accountId, name: 'Acme', plan: 'pro', openedAt: day(0) }
    expect(replay([opened]).account).toEqual(account)
    expect(replay([opened, { ...opened, name: 'Other', plan: 'free' }]).account).toEqual(account)
  })

  it('has the keys that were issued, each as at first', () => {
    const { type: _type, keyId: id, ...facts } = issued
    const again = { ...issued, secretHash: 'cd'.repeat(32) }
    expect([...replay([opened, issued, again]).keys.values()]).toEqual([{ id, ...facts }])
  })

  it('has no key that was issued before it was opened', () => {
    expect(replay([issued])).toEqual(NOTHING)
    expect(replay([issued, opened]).keys.size).toBe(0)
  })
})

describe('evolve', () => {
  it('is total, and gives back the same slice the second time', () => {
    fc.assert(
      fc.property(anyAccountSequence, anyAccountEvent, (sequence, event) => {
        const once = evolve(sliceFor(replay(sequence), event), event)
        expect(evolve(once, event)).toBe(once)
      }),
    )
  })

  it('makes the same view of a history with any suffix of it replayed', () => {
    fc.assert(
      fc.property(anyAccountHistory, fc.nat(), (history, at) => {
        const view = replay(history)
        expect(replay(history.slice(at % history.length), view)).toEqual(view)
      }),
    )
  })
})

describe('a scope', () => {
  test.each([
    { held: ['inboxes'], wanted: ['inboxes', 'read'], isAllowed: true },
    { held: ['read', 'audit'], wanted: ['audit'], isAllowed: true },
    { held: ['read'], wanted: ['inboxes'], isAllowed: false },
    { held: [], wanted: ['read'], isAllowed: false },
    { held: ['admin', 'operator'], wanted: [], isAllowed: false },
  ] as const)('$held allows one of $wanted: $isAllowed', ({ held, wanted, isAllowed }) => {
    expect(allows(held, wanted)).toBe(isAllowed)
  })
})

describe('a plan', () => {
  test.each(PLAN_NAMES)('%s says how long its inboxes live, in text and in milliseconds', (name) => {
    const { retention, hasApiAccess } = PLANS[name]
    expect(PLANS[name].name).toBe(name)
    expect(retention.ms).toBe(
      Number.parseInt(retention.text) * (retention.text.endsWith('d') ? 24 : 1) * 3_600_000,
    )
    expect(hasApiAccess).toBe(name !== 'free')
  })
})
