import { connect } from 'node:net'
import type { Target } from './client.js'
import { until } from './until.js'
import { httpPort } from './wire.js'

export interface StreamedEvent {
  id: string
  event: string
  data: { type: string; timestamp: string; data: Record<string, unknown> }
}

/** A client that reads a stream of events as they arrive. */
export interface ListeningClient {
  status: number
  headers: Headers
  /** Everything received, as text. */
  text(): string
  events(): StreamedEvent[]
  /** The id of the last event, null before the first. */
  lastId(): string | null
  isOver(): boolean
  /** Resolves with all events once there are at least that many. */
  count(events: number, withinMs?: number): Promise<StreamedEvent[]>
  /** Resolves with all events once the server has ended it. */
  end(withinMs?: number): Promise<StreamedEvent[]>
  /** Disconnects. */
  close(): void
}

/** Opens a stream. If it is refused, `text` is the problem. */
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
  const parsed: StreamedEvent[] = []
  let parsedTo = 0
  let isOver = false
  void read().finally(() => (isOver = true))
  const client: ListeningClient = {
    status: response.status,
    headers: response.headers,
    text: () => text,
    events,
    lastId: () => events().at(-1)?.id ?? null,
    isOver: () => isOver,
    count: (count, withinMs) =>
      until(`${count} events of ${path}`, () => hasCount(events(), count), withinMs),
    async end(withinMs) {
      await until(`the end of ${path}`, () => isOver, withinMs)
      return events()
    },
    close: () => hangingUp.abort(),
  }
  // The first lines arrive with the headers. After that, no event is missed.
  if (response.ok) await until('the beginning of a stream', () => text !== '' || isOver)
  return client

  /** Parses only what has arrived since the last call, because a stream may be long, and tests poll it. */
  function events(): StreamedEvent[] {
    const last = text.lastIndexOf('\n\n')
    if (last >= parsedTo) {
      parsed.push(...parseEvents(text.slice(parsedTo, last + 2)))
      parsedTo = last + 2
    }
    return [...parsed]
  }

  async function read(): Promise<void> {
    try {
      const decoder = new TextDecoder()
      const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        text += decoder.decode(next.value, { stream: true })
      }
    } catch {
      // The server or the test has closed the connection.
    }
  }
}

/** Opens a stream and does not read it. */
export function openIdleReader(target: Pick<Target, 'url' | 'apiKey'>, path: string): { close: () => void } {
  const socket = connect({ port: httpPort(target), host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${target.apiKey}\r\n\r\n`)
  return { close: () => void socket.destroy() }
}

function hasCount(events: StreamedEvent[], count: number): StreamedEvent[] | null {
  return events.length >= count ? events : null
}

/** The complete events in a text, parsed as the HTML standard defines. */
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
