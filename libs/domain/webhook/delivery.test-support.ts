import fc from 'fast-check'
import { anyEventOf } from '#libs/domain/event-sourcing/any-event.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { DELIVERY_EVENTS, REPLAY_EVENTS } from './events.js'

const values = { webhook_id: fc.constant(idFromBytes('whk', Buffer.alloc(16, 1))) }

/** Events of one webhook and a few deliveries or replays, so that events about the same one occur. */
export const anyDeliveryEvent = anyEventOf(DELIVERY_EVENTS, values)
export const anyReplayEvent = anyEventOf(REPLAY_EVENTS, values)

/** How events of one kind are applied, and to the state of which id. */
export interface Evolution<Event, State> {
  idOf: (event: Event) => string
  evolve: (state: State | null, event: Event) => State | null
}

/** Fails if repeating any event, or any part of a history, gives other states. */
export function expectIdempotence<Event, State>(
  anyEvent: fc.Arbitrary<Event>,
  evolution: Evolution<Event, State>,
): void {
  fc.assert(
    fc.property(fc.array(anyEvent), fc.nat(), fc.nat(), (events, one, other) => {
      const history = thatChange(events, evolution)
      const once = allAfter(history, evolution)
      const twice = history.flatMap((event) => [event, event])
      expect(allAfter(twice, evolution)).toEqual(once)
      const from = one % (history.length + 1)
      const to = from + (other % (history.length + 1 - from))
      expect(allAfter([...history.slice(0, to), ...history.slice(from)], evolution)).toEqual(once)
    }),
  )
}

function allAfter<Event, State>(
  history: readonly Event[],
  { idOf, evolve }: Evolution<Event, State>,
): Map<string, State | null> {
  const states = new Map<string, State | null>()
  for (const event of history) states.set(idOf(event), evolve(states.get(idOf(event)) ?? null, event))
  return states
}

/** Drops events that change nothing, such as an attempt before the previous one: no process appends those. */
function thatChange<Event, State>(
  events: readonly Event[],
  { idOf, evolve }: Evolution<Event, State>,
): Event[] {
  const states = new Map<string, State | null>()
  return events.filter((event) => {
    const before = states.get(idOf(event)) ?? null
    const next = evolve(before, event)
    states.set(idOf(event), next)
    return next !== before
  })
}
