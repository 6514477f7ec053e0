import fc from 'fast-check'

/** How some kind of event is applied: to which id's state, and how. */
export interface Evolution<Event, State> {
  idOf: (event: Event) => string
  evolve: (state: State | null, event: Event) => State | null
}

/** Fails if an event that comes twice, or a part of a history that comes again, leads to other states. */
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

/** What is left out, such as an attempt or a step ahead of the one before it, no instance appends. */
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
