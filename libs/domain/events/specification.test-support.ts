import type { Decision } from './declare.js'

/** What a specification needs: the state before any event, the step from one state to the next, and the decision. */
export interface Decider<State, Command, Event, Refusal> {
  initial: State
  evolve: (state: State, event: Event) => State
  decide: (state: State, command: Command) => Decision<Event, Refusal>
}

/**
 * The words of a specification: `given(...events).when(command).then([...events])`, or `.thenRefused(refusal)`.
 * `given(...events).state` and `replay(events)` are the state that a history leads to.
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
