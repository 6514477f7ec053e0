import type { Target } from './client.js'
import { until } from './until.js'

export interface StreamedEvent {
  id: string
  event: string
  data: { type: string; timestamp: string; data: Record<string, unknown> }
}

/** A stream of events as a client has it, read as it comes. */
export interface ListeningClient {
  status: number
  headers: Headers
  /** Everything that came, as text. */
  text(): string
  events(): StreamedEvent[]
  /** The id of the last event, null before the first. */
  lastId(): string | null
  isOver(): boolean
  /** Resolves with all events once there are as many. */
  count(events: number, withinMs?: number): Promise<StreamedEvent[]>
  /** Resolves with all events once the server has ended it. */
  end(withinMs?: number): Promise<StreamedEvent[]>
  /** Hangs up. */
  close(): void
}

/** Opens a stream; of a refusal the text is the problem. */
export async function listen(
  target: Pick<Target, 'url' | 'apiKey'>,
  path: string,
  headers: Record<string, string> = {},
): Promise<ListeningClient> {
  const hangingUp = new AbortController()
  const { signal } = hangingUp
  const authorization = `Bearer ${target.apiKey}`
  const response = await fetch(target.url + path, { headers: { authorization, ...headers }, signal })
  let text = ''
  let isOver = false
  void read().finally(() => (isOver = true))
  const client: ListeningClient = {
    status: response.status,
    headers: response.headers,
    text: () => text,
    events: () => parseEvents(text),
    lastId: () => parseEvents(text).at(-1)?.id ?? null,
    isOver: () => isOver,
    count: (count, withinMs) =>
      until(`${count} events of ${path}`, () => hasCount(client.events(), count), withinMs),
    async end(withinMs) {
      await until(`the end of ${path}`, () => isOver, withinMs)
      return client.events()
    },
    close: () => hangingUp.abort(),
  }
  // The first lines come with the headers: from then on nothing is missed.
  if (response.ok) await until('the beginning of a stream', () => text !== '' || isOver)
  return client

  async function read(): Promise<void> {
    try {
      const decoder = new TextDecoder()
      const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        text += decoder.decode(next.value, { stream: true })
      }
    } catch {
      // Cut off by the server, or hung up by the test: it is over.
    }
  }
}

function hasCount(events: StreamedEvent[], count: number): StreamedEvent[] | null {
  return events.length >= count ? events : null
}

/** The whole events in a text, as the HTML standard reads them. */
function parseEvents(text: string): StreamedEvent[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => {
      const fields = new Map(block.split('\n').map((line) => splitField(line)))
      const [id, event, data] = ['id', 'event', 'data'].map((name) => fields.get(name))
      if (id === undefined || event === undefined || data === undefined) return []
      return [{ id, event, data: JSON.parse(data) as StreamedEvent['data'] }]
    })
}

function splitField(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
}
