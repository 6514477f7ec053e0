/** What a command leads to: events, or a refusal; no event if everything already is as the command wants it. */
export type Decision<Event, Refusal> = { events: Event[]; refusal: null } | { events: []; refusal: Refusal }

export function accept<Event>(...events: Event[]): { events: Event[]; refusal: null } {
  return { events, refusal: null }
}

export function refuse<const Refusal>(refusal: Refusal): { events: []; refusal: Refusal } {
  return { events: [], refusal }
}
