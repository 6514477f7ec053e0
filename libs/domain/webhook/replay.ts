import type { ReplayId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from './delivery.js'
import type { ReplayEvent, ReplayPlace, ReplayRequested, ReplaySelection } from './webhook-events.js'

export const REPLAY_STATES = ['running', 'completed', 'cancelled'] as const

/** At once for one webhook: each looks through all that its inboxes hold. */
export const MAX_RUNNING_REPLAYS = 5

/** Deliveries asked for once more, or for the first time of what was there before the webhook. */
export interface Replay extends Omit<ReplayRequested, 'type' | 'replayId'> {
  id: ReplayId
  /** Steps made. */
  steps: number
  /** Where it goes on; null once everything has been asked for. */
  next: ReplayPlace | null
  /** How many deliveries it has asked for. */
  requested: number
  /** Those of them that an attempt was made of, or that are over. */
  begun: number
  /** Those of them that are over, well or not. */
  done: number
  cancelledAt: Date | null
}

/** Total and idempotent: an event that comes again, or out of place, gives back the replay it was given. */
export function evolve(replay: Replay | null, event: ReplayEvent): Replay | null {
  if (event.type === 'ReplayRequested') {
    if (replay !== null) return replay
    const { type: _type, replayId: id, ...facts } = event
    const next = beginningOf(event.selection)
    return { ...facts, id, steps: 0, next, requested: 0, begun: 0, done: 0, cancelledAt: null }
  }
  if (replay === null || !isUnderWay(replay)) return replay
  if (event.type === 'ReplayCancelled') return { ...replay, cancelledAt: event.cancelledAt }
  if (event.step !== replay.steps + 1) return replay
  return { ...replay, steps: event.step, next: event.next }
}

/** The replay once one of its deliveries has come to be as `after`; null: it had not been asked for. */
export function countDelivery(replay: Replay, before: Delivery | null, after: Delivery): Replay {
  const grown = (has: (delivery: Delivery) => boolean) =>
    Number(has(after)) - Number(before !== null && has(before))
  return {
    ...replay,
    requested: replay.requested + (before === null ? 1 : 0),
    begun: replay.begun + grown((delivery) => isOver(delivery) || delivery.attempts.length > 0),
    done: replay.done + grown(isOver),
  }
}

export function stateOf(replay: Replay): (typeof REPLAY_STATES)[number] {
  if (replay.cancelledAt !== null) return 'cancelled'
  return isUnderWay(replay) ? 'running' : 'completed'
}

/** Whether there is more to ask for. */
export function isAsking({ next, cancelledAt }: Replay): boolean {
  return next !== null && cancelledAt === null
}

function isUnderWay(replay: Replay): boolean {
  return isAsking(replay) || (replay.cancelledAt === null && replay.done < replay.requested)
}

function beginningOf({ kind }: ReplaySelection): ReplayPlace {
  if (kind === 'deliveries') return { stage: 'given', offset: 0 }
  if (kind === 'range') return { stage: 'told', offset: 0 }
  return { stage: 'held', inboxId: null, offset: 0 }
}

function isOver({ state }: Delivery): boolean {
  return state !== 'pending'
}
