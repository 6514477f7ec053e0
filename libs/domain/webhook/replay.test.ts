import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { Delivery } from './delivery.js'
import { anyReplayEvent, expectIdempotence } from './delivery.test-support.js'
import type { ReplayEvent, ReplayPosition, ReplayRequested } from './events.js'
import { countDelivery, evolve, hasMoreToRequest, stateOf, type Replay } from './replay.js'

const at = new Date(Date.UTC(2026, 0, 1))
const webhookId = idFromBytes('whk', Buffer.alloc(16, 1))
const replayId = idFromBytes('rpl', Buffer.alloc(16, 2))
const accountId = idFromBytes('acc', Buffer.alloc(16, 9))
const requested: ReplayRequested = {
  ...{ type: 'ReplayRequested', webhookId, replayId, accountId, environment: 'staging', requestedAt: at },
  selection: { kind: 'range', from: new Date(0), to: at, onlyFailed: false },
}
const offsetAt = (offset: number): ReplayPosition => ({ stage: 'past-deliveries', offset })
const advanced = (step: number, next: ReplayPosition | null): ReplayEvent => ({
  ...{ type: 'ReplayAdvanced', webhookId, replayId, step, next, advancedAt: at },
})
const cancelled: ReplayEvent = { type: 'ReplayCancelled', webhookId, replayId, cancelledAt: at }
const pending: Delivery = {
  ...{ id: idFromBytes('dlv', Buffer.alloc(16, 3)), webhookId, accountId, environment: 'staging', replayId },
  notification: { type: 'sample', inboxId: null, messageId: null, occurredAt: at },
  ...{ requestedAt: at, state: 'pending', attempts: [], dueAt: at, abandonedFor: null },
}
const failedAttempt = {
  ...{ attemptedAt: at, latencyMs: 3, answer: null, hasSucceeded: false, status: 500, error: 'answered 500' },
}

function after(...events: ReplayEvent[]): Replay {
  const replay = events.reduce<Replay | null>(evolve, null)
  if (replay === null) throw new Error('no replay')
  return replay
}

describe('a replay', () => {
  it('does not exist before it is requested, and is requested once', () => {
    expect(evolve(null, advanced(1, null))).toBeNull()
    expect(evolve(null, cancelled)).toBeNull()
    const twice = after(requested, advanced(1, offsetAt(7)), requested)
    expect(twice).toMatchObject({ id: replayId, steps: 1, next: offsetAt(7), requested: 0, done: 0 })
  })

  it.each([
    { selection: requested.selection, next: offsetAt(0) },
    {
      selection: { kind: 'deliveries', deliveryIds: [] } as const,
      next: { stage: 'selected-deliveries', offset: 0 },
    },
    {
      selection: { kind: 'existing-mail', since: null } as const,
      next: { stage: 'existing-mail', inboxId: null, offset: 0 },
    },
  ])('of $selection.kind starts at the beginning', ({ selection, next }) => {
    expect(after({ ...requested, selection }).next).toEqual(next)
  })

  it('advances step by step: a repeated or early step changes nothing', () => {
    const first = after(requested, advanced(1, offsetAt(5)))
    expect(evolve(first, advanced(1, offsetAt(9)))).toBe(first)
    expect(evolve(first, advanced(3, offsetAt(9)))).toBe(first)
    expect(after(requested, advanced(1, offsetAt(5)), advanced(2, null))).toMatchObject({
      steps: 2,
      next: null,
    })
  })

  it('runs until all deliveries are requested and have ended', () => {
    const running = countDelivery(after(requested), null, pending)
    expect(stateOf(running)).toBe('running')
    const requestedAll = evolve(running, advanced(1, null)) ?? running
    expect([hasMoreToRequest(requestedAll), stateOf(requestedAll)]).toEqual([false, 'running'])
    const over = countDelivery(requestedAll, pending, { ...pending, state: 'succeeded', dueAt: null })
    expect([stateOf(over), over.requested, over.done]).toEqual(['completed', 1, 1])
    expect(evolve(over, cancelled)).toBe(over)
  })

  it('that is cancelled requests nothing more', () => {
    const replay = after(requested, cancelled)
    expect([hasMoreToRequest(replay), stateOf(replay)]).toEqual([false, 'cancelled'])
    expect(evolve(replay, advanced(1, offsetAt(5)))).toBe(replay)
  })

  it('counts each delivery when it is requested, first attempted, and ended', () => {
    const counts = ({ requested, begun, done }: Replay) => [requested, begun, done]
    const tried: Delivery = { ...pending, attempts: [failedAttempt] }
    const triedAgain: Delivery = { ...pending, attempts: [failedAttempt, failedAttempt] }
    const failed: Delivery = { ...triedAgain, state: 'failed', dueAt: null }
    const steps: [Delivery | null, Delivery][] = [
      [null, pending],
      [pending, tried],
      [tried, triedAgain],
      [triedAgain, failed],
    ]
    const seen = [after(requested)]
    for (const [before, next] of steps)
      seen.push(countDelivery(seen.at(-1) ?? after(requested), before, next))
    expect(seen.map(counts)).toEqual([
      [0, 0, 0],
      [1, 0, 0],
      [1, 1, 0],
      [1, 1, 0],
      [1, 1, 1],
    ])
    const abandoned = countDelivery(after(requested), null, { ...pending, state: 'abandoned', dueAt: null })
    expect(counts(abandoned)).toEqual([1, 1, 1])
  })

  it('is the same if any event, or any part of its history, is repeated', () => {
    expectIdempotence(anyReplayEvent, { idOf: ({ replayId }) => replayId, evolve })
  })
})
