/** The outcome of a command: events, or a refusal. No events if there is nothing to change. */
export type Decision<Event, Refusal> = { events: Event[]; refusal: null } | { events: []; refusal: Refusal }

export function accept<Event>(...events: Event[]): { events: Event[]; refusal: null } {
  return { events, refusal: null }
}

export function refuse<const Refusal>(refusal: Refusal): { events: []; refusal: Refusal } {
  return { events: [], refusal }
}
