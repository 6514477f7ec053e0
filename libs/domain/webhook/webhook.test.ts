import fc from 'fast-check'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type { RegistrationEvent } from './events.js'
import {
  anyRegistrationEvent,
  changed,
  day,
  disabled,
  entryAfter,
  FACTS,
  isCaused,
  registered,
  removed,
  rotated,
  sealed,
  WEBHOOK_ID,
  webhookAfter,
} from './webhook.test-support.js'
import { evolve, REMOVED, signingSecrets, type WebhookEntry } from './webhook.js'

describe('a webhook', () => {
  it('keeps its first state if it is registered again', () => {
    const { webhookId: _id, ...facts } = FACTS
    const webhook = {
      id: WEBHOOK_ID,
      ...facts,
      state: 'active',
      disabledReason: null,
      activeSince: day(1),
      former: null,
      rotation: 0,
      createdAt: day(1),
    }
    expect(webhookAfter(registered)).toEqual(webhook)
    expect(webhookAfter(registered, { ...registered, url: sealed(1) })).toEqual(webhook)
  })

  it('has its last changes and is otherwise unchanged', () => {
    const url = sealed(1)
    expect(webhookAfter(registered, changed({ url }))).toEqual({ ...webhookAfter(registered), url })
    const events = ['inbox.deleted', 'inbox.expired'] as const
    expect(webhookAfter(registered, changed({ url }), changed({ events }))).toMatchObject({ url, events })
  })

  it('has the reason why it is disabled, and the time since it is active', () => {
    expect(webhookAfter(registered, changed({ state: 'disabled' }))).toMatchObject({
      state: 'disabled',
      disabledReason: 'by-request',
      activeSince: day(1),
    })
    expect(webhookAfter(registered, disabled('failing'), disabled('gone'))).toMatchObject({
      state: 'disabled',
      disabledReason: 'failing',
    })
    expect(webhookAfter(registered, disabled('gone'), changed({ state: 'active' }, day(4)))).toMatchObject({
      state: 'active',
      disabledReason: null,
      activeSince: day(4),
    })
  })

  it('keeps its reason if it is disabled again by request', () => {
    expect(webhookAfter(registered, disabled('gone'), changed({ state: 'disabled' }))).toMatchObject({
      disabledReason: 'gone',
    })
  })

  it('stays removed, whatever event follows', () => {
    expect(entryAfter(registered, removed)).toBe(REMOVED)
    expect(entryAfter(registered, removed, registered, changed({ state: 'active' }))).toBe(REMOVED)
  })

  it('does not exist before its registration', () => {
    expect(entryAfter(changed({ state: 'disabled' }), disabled('gone'), removed)).toBeNull()
  })
})

describe('the secret of a webhook', () => {
  const signsWith = (history: RegistrationEvent[], at: Date) =>
    signingSecrets(webhookAfter(registered, ...history), at)

  it('is the only one before a rotation', () => {
    expect(signsWith([], day(2))).toEqual([sealed(0)])
  })

  it('is used together with the new one until its grace ends', () => {
    const history = [rotated(1, day(2), day(3))]
    expect(signsWith(history, day(2))).toEqual([sealed(1), sealed(0)])
    expect(signsWith(history, day(3))).toEqual([sealed(1)])
  })

  it('is not used after a second rotation, even during its grace', () => {
    const history = [rotated(1, day(2), day(9)), rotated(2, day(3), day(9))]
    expect(signsWith(history, day(4))).toEqual([sealed(2), sealed(1)])
  })

  it('is that of the first of two competing rotations; a repeated rotation changes nothing', () => {
    const [first, rival] = [rotated(1, day(2), day(9)), { ...rotated(1, day(2), day(9)), secret: sealed(7) }]
    expect(webhookAfter(registered, first, rival)).toEqual(webhookAfter(registered, first))
    const second = rotated(2, day(3), day(9))
    expect(webhookAfter(registered, first, second, first)).toEqual(webhookAfter(registered, first, second))
  })
})

describe('evolve', () => {
  const anyEvent = anyRegistrationEvent()
  const anySequence = fc.array(anyEvent, { maxLength: 12 })
  /** Histories that a log may contain, starting with a registration. */
  const anyHistory = anySequence.map((rest) => [registered, ...rest].filter(isCaused()))

  type Entries = ReadonlyMap<WebhookId, WebhookEntry>
  const follow = (entries: Entries, event: RegistrationEvent): Entries =>
    new Map(entries).set(event.webhookId, evolve(entries.get(event.webhookId) ?? null, event))
  const replay = (events: readonly RegistrationEvent[], before: Entries = new Map()) =>
    events.reduce(follow, before)

  it('is total, and returns the same entry the second time', () => {
    fc.assert(
      fc.property(anySequence, anyEvent, (sequence, event) => {
        const once = evolve(replay(sequence).get(event.webhookId) ?? null, event)
        expect(evolve(once, event)).toBe(once)
      }),
    )
  })

  it('gives the same view if any suffix of a history is replayed', () => {
    fc.assert(
      fc.property(anyHistory, fc.nat(), (history, at) => {
        const view = replay(history)
        expect(replay(history.slice(at % history.length), view)).toEqual(view)
      }),
    )
  })
})
