import fc from 'fast-check'
import { dayOf } from '#libs/domain/account/quota.js'
import {
  anyHistory,
  anyInboxEvent,
  anySequence,
  changed,
  created,
  deleted,
  expired,
  FACTS,
  given,
  labelled,
  MESSAGE_ID,
  messageDeleted,
  minute,
  OTHER_KEY_ID,
  received,
  replay,
  sliceFor,
} from './inbox.test-support.js'
import { asOf, evolve } from './inbox.js'

const one = received(minute(1))

describe('an inbox', () => {
  it('is active and empty at first', () => {
    const { inboxId: id, cause: _cause, ...facts } = FACTS
    expect(given(created).state.inbox).toEqual({
      ...facts,
      id,
      state: 'active',
      duration: '30m',
      createdAt: minute(0),
      expiresAt: minute(30),
      messageCount: 0,
      receivedCount: 0,
      receivedOn: null,
      droppedCount: 0,
      storedBytes: 0,
      faults: [],
      faultsRevision: 0,
      lastMessageAt: null,
      tokens: [],
      revision: 0,
    })
  })

  it('has what the last change gave it, and keeps the rest with its messages', () => {
    const lifetime = { duration: '50m', expiresAt: minute(55) }
    const [longer, renamed] = [changed(minute(5), { lifetime }), Buffer.from('other details')]
    const before = given(created, one, longer).state
    expect(before.inbox).toEqual({ ...given(created, one).state.inbox, ...lifetime, revision: 1 })
    expect(before.messages.get(MESSAGE_ID)).toMatchObject({ state: 'present' })
    const other = changed(minute(6), { revision: 2, sealed: renamed, inbox: labelled({ run: '43' }) })
    const { inbox } = given(created, one, longer, other).state
    expect(inbox).toEqual({ ...before.inbox, labels: { run: '43' }, sealed: renamed, revision: 2 })
  })

  it('ignores a change that was decided from the same state as an earlier one', () => {
    const [first, second] = [{ run: '43' }, { run: '44' }].map((labels) =>
      changed(minute(5), { inbox: labelled(labels) }),
    )
    if (first === undefined || second === undefined) throw new Error('two changes')
    expect(given(created, first, second).state.inbox).toMatchObject({ labels: { run: '43' }, revision: 1 })
  })

  it('stays ended, if a change comes after its end', () => {
    const lifetime = { duration: '50m', expiresAt: minute(55) }
    const { inbox } = given(created, expired, changed(minute(29), { lifetime })).state
    expect(inbox).toEqual(given(created, expired).state.inbox)
  })

  it('counts its messages and has the time of the last one', () => {
    const { inbox, messages } = given(created, one).state
    expect(inbox).toMatchObject({ messageCount: 1, storedBytes: one.size, lastMessageAt: minute(1) })
    expect(messages.get(MESSAGE_ID)).toEqual({
      state: 'present',
      id: MESSAGE_ID,
      receivedAt: minute(1),
      size: one.size,
    })
  })

  it('remembers a deleted message', () => {
    const { inbox, messages } = given(created, one, messageDeleted(minute(2))).state
    expect(inbox).toMatchObject({
      messageCount: 0,
      receivedCount: 1,
      receivedOn: { day: dayOf(minute(1)), count: 1 },
      storedBytes: 0,
      lastMessageAt: minute(1),
    })
    expect(messages.get(MESSAGE_ID)).toEqual({ state: 'deleted', id: MESSAGE_ID, deletedAt: minute(2) })
  })

  it('ignores a message whose deletion came first', () => {
    const { inbox, messages } = given(created, messageDeleted(minute(2)), one).state
    expect(inbox).toMatchObject({ messageCount: 0, receivedCount: 0, storedBytes: 0, lastMessageAt: null })
    expect(messages.get(MESSAGE_ID)).toMatchObject({ state: 'deleted' })
  })

  test.each([
    { event: deleted(minute(3)), state: 'deleted', endedAt: minute(3), endedBy: OTHER_KEY_ID },
    { event: expired, state: 'expired', endedAt: minute(30), endedBy: null },
  ])('keeps nothing sealed once $state', ({ event, ...end }) => {
    const { inbox, messages } = given(created, one, event).state
    expect(inbox).toMatchObject({
      ...end,
      messageCount: 1,
      receivedCount: 1,
      receivedOn: { day: dayOf(minute(1)), count: 1 },
      address: FACTS.address,
      labels: FACTS.labels,
    })
    expect(inbox).not.toHaveProperty('sealed')
    expect(messages.size).toBe(0)
  })

  it('has ended after its expiry, with or without an InboxExpired event', () => {
    const active = given(created, one).state.inbox
    if (active === null) throw new Error('the example has no inbox')
    expect(asOf(active, new Date(minute(30).getTime() - 1))).toBe(active)
    expect(asOf(active, minute(30))).toEqual(given(created, one, expired).state.inbox)
    const gone = given(created, deleted(minute(3))).state.inbox
    expect(gone === null ? null : asOf(gone, minute(31))).toBe(gone)
  })
})

describe('evolve', () => {
  it('is total, and returns the same slice the second time', () => {
    fc.assert(
      fc.property(anySequence, anyInboxEvent, (sequence, event) => {
        const slice = sliceFor(replay(sequence), event)
        const once = evolve(slice, event)
        expect(evolve(once, event)).toBe(once)
      }),
    )
  })

  it('does not change its argument', () => {
    fc.assert(
      fc.property(anySequence, anyInboxEvent, (sequence, event) => {
        const slice = sliceFor(replay(sequence), event)
        const before = structuredClone(slice)
        evolve(slice, event)
        expect(slice).toEqual(before)
      }),
    )
  })

  it('gives the same view if any event of a history is repeated', () => {
    fc.assert(
      fc.property(anySequence, fc.nat(), (sequence, at) => {
        const index = sequence.length === 0 ? 0 : at % sequence.length
        const doubled = [...sequence.slice(0, index + 1), ...sequence.slice(index)]
        expect(replay(doubled)).toEqual(replay(sequence))
      }),
    )
  })

  it('gives the same view if any suffix of a history is replayed', () => {
    fc.assert(
      fc.property(anyHistory, fc.nat(), (history, at) => {
        const view = replay(history)
        expect(replay(history.slice(at % history.length), view)).toEqual(view)
      }),
      { numRuns: 500 },
    )
  })

  it('counts the messages that are present', () => {
    fc.assert(
      fc.property(anySequence, (sequence) => {
        const { inbox, messages } = replay(sequence)
        const present = [...messages.values()].filter(({ state }) => state === 'present')
        if (inbox?.state === 'active') expect(inbox.messageCount).toBe(present.length)
        else expect(present).toEqual([])
      }),
    )
  })

  it('changes nothing after an end', () => {
    fc.assert(
      fc.property(
        anyHistory,
        fc.constantFrom(expired, deleted(minute(3))),
        anySequence,
        (history, end, rest) => {
          const ended = replay([...history, end])
          expect(ended.inbox?.state).not.toBe('active')
          expect(replay(rest, ended)).toEqual(ended)
        },
      ),
    )
  })
})
