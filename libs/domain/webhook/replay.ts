import type { ReplayId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from './delivery.js'
import type { ReplayEvent, ReplayPosition, ReplayRequested, ReplaySelection } from './events.js'

export const REPLAY_STATES = ['running', 'completed', 'cancelled'] as const

/** Of one webhook at the same time: each of them may scan all mail of its inboxes. */
export const MAX_RUNNING_REPLAYS = 5

/** A request to deliver notifications again, or mail that was received before the webhook was registered. */
export interface Replay extends Omit<ReplayRequested, 'type' | 'replayId'> {
  id: ReplayId
  steps: number
  /** The position at which the next step starts; null once all deliveries have been requested. */
  next: ReplayPosition | null
  /** Deliveries that it has requested. */
  requested: number
  /** Requested deliveries that have been attempted, or have ended. */
  begun: number
  /** Requested deliveries that have ended, successfully or not. */
  done: number
  cancelledAt: Date | null
}

/** Total and idempotent: for a repeated or misplaced event, returns the same replay object. */
export function evolve(replay: Replay | null, event: ReplayEvent): Replay | null {
  if (event.type === 'ReplayRequested') {
    if (replay !== null) return replay
    const { type: _type, replayId: id, ...facts } = event
    const next = startOf(event.selection)
    return { ...facts, id, steps: 0, next, requested: 0, begun: 0, done: 0, cancelledAt: null }
  }
  if (replay === null || !isRunning(replay)) return replay
  if (event.type === 'ReplayCancelled') return { ...replay, cancelledAt: event.cancelledAt }
  if (event.step !== replay.steps + 1) return replay
  return { ...replay, steps: event.step, next: event.next }
}

/** Updates the counts for a change of one of its deliveries; `before` is null if it was just requested. */
export function countDelivery(replay: Replay, before: Delivery | null, after: Delivery): Replay {
  const growth = (has: (delivery: Delivery) => boolean) =>
    Number(has(after)) - Number(before !== null && has(before))
  return {
    ...replay,
    requested: replay.requested + (before === null ? 1 : 0),
    begun: replay.begun + growth((delivery) => isOver(delivery) || delivery.attempts.length > 0),
    done: replay.done + growth(isOver),
  }
}

export function stateOf(replay: Replay): (typeof REPLAY_STATES)[number] {
  if (replay.cancelledAt !== null) return 'cancelled'
  return isRunning(replay) ? 'running' : 'completed'
}

export function hasMoreToRequest({ next, cancelledAt }: Replay): boolean {
  return next !== null && cancelledAt === null
}

function isRunning(replay: Replay): boolean {
  return hasMoreToRequest(replay) || (replay.cancelledAt === null && replay.done < replay.requested)
}

function startOf({ kind }: ReplaySelection): ReplayPosition {
  if (kind === 'deliveries') return { stage: 'selected-deliveries', offset: 0 }
  if (kind === 'range') return { stage: 'past-deliveries', offset: 0 }
  return { stage: 'existing-mail', inboxId: null, offset: 0 }
}

function isOver({ state }: Delivery): boolean {
  return state !== 'pending'
}
