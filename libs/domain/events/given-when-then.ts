import type { Decision } from './decision.js'

/** The words after `given(…)`: `.when(command).then(events)`, or `.thenRefused(refusal)`. */
export function whenThen<Command, Event, Refusal>(decide: (command: Command) => Decision<Event, Refusal>) {
  return {
    when(command: Command) {
      const decision = decide(command)
      return {
        then: (events: Event[]) => expect(decision).toEqual({ events, refusal: null }),
        thenRefused: (refusal: Refusal) => expect(decision).toEqual({ events: [], refusal }),
      }
    },
  }
}
