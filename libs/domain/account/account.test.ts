import fc from 'fast-check'
import {
  ACCOUNT_ID,
  anyAccountEvent,
  anyAccountHistory,
  anyAccountSequence,
  day,
  hash,
  issued,
  KEY_ID,
  NOTHING,
  opened,
  replay,
  revoked,
  rotated,
  sliceFor,
} from './account.test-support.js'
import { evolve, isValidSecret } from './account.js'
import type { AccountEvent } from './events.js'
import { allows } from './access.js'

function keyAfter(...history: AccountEvent[]) {
  const key = replay([opened, issued, ...history]).keys.get(KEY_ID)
  if (key === undefined) throw new Error('no key')
  return key
}

describe('an account', () => {
  it('keeps its first state if it is opened again', () => {
    const account = {
      id: ACCOUNT_ID,
      name: 'Acme',
      plan: 'pro',
      limits: null,
      openedAt: day(0),
      consoleSessions: [],
      owners: [],
      defaultFaults: {},
      quotas: {},
      requiresProvider: false,
      suspendedAt: null,
      closed: null,
      erasedAt: null,
    }
    expect(replay([opened]).account).toEqual(account)
    expect(replay([opened, { ...opened, name: 'Other', plan: 'free' }]).account).toEqual(account)
  })

  it('has the plan and limits of the last change', () => {
    const changed = { type: 'PlanChanged', accountId: ACCOUNT_ID, changedAt: day(2) } as const
    const limits = { requestsPerMinute: 7 }
    const view = replay([opened, { ...changed, plan: 'enterprise', limits }])
    expect(view.account).toMatchObject({ plan: 'enterprise', limits })
    expect(replay([{ ...changed, plan: 'free', limits: null }], view).account).toMatchObject({
      plan: 'free',
      limits: null,
    })
  })

  it('keeps the first state of a key that is issued again', () => {
    const { type: _type, keyId: id, ...facts } = issued
    const again = { ...issued, secretHash: hash('c') }
    expect([...replay([opened, issued, again]).keys.values()]).toEqual([
      { id, ...facts, rotation: 0, former: null, revokedAt: null, expiredAt: null, notices: [] },
    ])
  })

  it('has no keys that were issued before it was opened', () => {
    expect(replay([issued])).toEqual(NOTHING)
    expect(replay([issued, opened]).keys.size).toBe(0)
  })
})

describe('a secret', () => {
  const isValidAfter = (history: AccountEvent[], rotation: number, at: Date) =>
    isValidSecret(keyAfter(...history), hash(String(rotation)), at)

  it('is valid once it is issued, and no other secret is', () => {
    expect(isValidAfter([], 0, day(1))).toBe(true)
    expect(isValidAfter([], 1, day(1))).toBe(false)
  })

  it('is valid until its grace ends after a rotation', () => {
    const history = [rotated(1, day(2), day(3))]
    expect(isValidAfter(history, 1, day(2))).toBe(true)
    expect(isValidAfter(history, 0, day(2))).toBe(true)
    expect(isValidAfter(history, 0, day(3))).toBe(false)
    expect(isValidAfter(history, 1, day(9))).toBe(true)
  })

  it('is invalid after a second rotation, even during its grace', () => {
    const history = [rotated(1, day(2), day(9)), rotated(2, day(3), day(9))]
    expect([0, 1, 2].map((rotation) => isValidAfter(history, rotation, day(4)))).toEqual([false, true, true])
  })

  it('is invalid once its key is revoked, even during its grace', () => {
    const history = [rotated(1, day(2), day(9)), revoked(day(3))]
    for (const rotation of [0, 1]) expect(isValidAfter(history, rotation, day(3))).toBe(false)
  })
})

describe('a rotation', () => {
  it('changes nothing if another rotation preceded it, or if it is repeated', () => {
    const [first, rival] = [
      rotated(1, day(2), day(9)),
      { ...rotated(1, day(2), day(9)), secretHash: hash('f') },
    ]
    const second = rotated(2, day(3), day(9))
    expect(keyAfter(first, rival)).toEqual(keyAfter(first))
    expect(keyAfter(first, second, first)).toEqual(keyAfter(first, second))
  })

  it('does not change a revoked key', () => {
    expect(keyAfter(revoked(day(2)), rotated(1, day(3), day(9)))).toEqual(keyAfter(revoked(day(2))))
  })
})

describe('a revocation', () => {
  it('keeps its first time if it is repeated', () => {
    expect(keyAfter(revoked(day(2)), revoked(day(3))).revokedAt).toEqual(day(2))
  })
})

describe('evolve', () => {
  it('is total, and returns the same slice the second time', () => {
    fc.assert(
      fc.property(anyAccountSequence, anyAccountEvent, (sequence, event) => {
        const once = evolve(sliceFor(replay(sequence), event), event)
        expect(evolve(once, event)).toBe(once)
      }),
    )
  })

  it('gives the same view if any suffix of a history is replayed', () => {
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
