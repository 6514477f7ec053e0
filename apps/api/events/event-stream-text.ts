/*
 * Server-sent events as the HTML standard has them (section 9.2, "Server-sent events"): an event is a run of lines
 * that an empty one ends, and a line that begins with a colon is a comment.
 */

export const MEDIA_TYPE = 'text/event-stream'

/** After so many milliseconds a client whose stream has ended comes again. */
export const RETRY = 'retry: 2000\n\n'

/** Shows a client, and what lies between, that the stream is still there. */
export const COMMENT = ':\n\n'

export interface EventText {
  /** What a client gives back as `Last-Event-ID`; of one line, as the name and the data are. */
  id: string
  event: string
  data: string
}

export function eventText({ id, event, data }: EventText): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}
