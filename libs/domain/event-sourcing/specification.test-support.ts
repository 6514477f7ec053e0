import type { Decision } from './decision.js'

/** The functions under test, and the state before any event. */
export interface Decider<State, Command, Event, Refusal> {
  initial: State
  evolve: (state: State, event: Event) => State
  decide: (state: State, command: Command) => Decision<Event, Refusal>
}

/**
 * Makes the functions for `given(...events).when(command).then([...events])` and `.thenRefused(refusal)`.
 * `given(...events).state` and `replay(events)` are the state after a history.
 */
export function specificationOf<State, Command, Event, Refusal>({
  initial,
  evolve,
  decide,
}: Decider<State, Command, Event, Refusal>) {
  const replay = (history: readonly Event[], before = initial): State =>
    history.reduce((state, event) => evolve(state, event), before)

  const given = (...history: Event[]) => {
    const state = replay(history)
    return {
      state,
      when(command: Command) {
        const decision = decide(state, command)
        return {
          then: (events: Event[]) => expect(decision).toEqual({ events, refusal: null }),
          thenRefused: (refusal: Refusal) => expect(decision).toEqual({ events: [], refusal }),
        }
      },
    }
  }
  return { given, replay }
}
