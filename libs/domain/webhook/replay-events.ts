import Type from 'typebox'
import {
  boolean,
  count,
  event,
  id,
  list,
  optional,
  plain,
  text,
  time,
  union,
  type EventOf,
  type ValueOf,
} from '#libs/domain/events/declare.js'

const selection = union('kind', {
  /** What happened from one moment up to, not including, another; or of that, what a delivery failed to deliver. */
  range: { from: time, to: time, onlyFailed: boolean },
  deliveries: { deliveryIds: list(id('dlv')) },
  /** The mail that was there when the webhook was registered, from a moment on or all of it. */
  held: { since: optional(time, null) },
})
/** What is delivered again. */
export type ReplaySelection = ValueOf<typeof selection>

const place = union('stage', {
  /** Behind so many of the deliveries it was given. */
  given: { offset: count },
  /** From an offset of the webhook's deliveries on. */
  told: { offset: count },
  /** Among the mail that its inboxes hold, from an offset of one inbox on; null: before the first inbox. */
  held: { inboxId: optional(id('inb'), null), offset: count },
})
/** Where a replay goes on. */
export type ReplayPlace = ValueOf<typeof place>

const ids = { webhookId: id('whk'), replayId: id('rpl') }

/** What is on the log beside the deliveries that a replay asks for. */
export const REPLAY_EVENTS = {
  ReplayRequested: event('webhook.replay-requested', {
    ...ids,
    accountId: id('acc'),
    environment: text,
    selection,
    requestedAt: time,
  }),

  /** Follows the deliveries of the step that it ends. */
  ReplayAdvanced: event('webhook.replay-advanced', {
    ...ids,
    /** Counts steps from 1. One that is not higher than the last changes nothing. */
    step: plain(Type.Integer({ minimum: 1 })),
    /** Null if everything has been asked for. */
    next: optional(place, null),
    advancedAt: time,
  }),

  ReplayCancelled: event('webhook.replay-cancelled', { ...ids, cancelledAt: time }),
}

export type ReplayEvent = EventOf<typeof REPLAY_EVENTS>
export type ReplayRequested = EventOf<typeof REPLAY_EVENTS, 'ReplayRequested'>
export type ReplayAdvanced = EventOf<typeof REPLAY_EVENTS, 'ReplayAdvanced'>
export type ReplayCancelled = EventOf<typeof REPLAY_EVENTS, 'ReplayCancelled'>
