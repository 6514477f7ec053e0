import { pause } from './connection.js'
import { ApiError } from './errors.js'
import type { Access } from './message.js'
import type { Schemas } from './options.js'

/** A server-sent event of an inbox. `id` is the position after it, for `since`. */
export interface InboxEvent {
  id: string
  event: Schemas['EventBody']['type']
  data: Schemas['EventBody']
}

/** The server sends a comment every 15 seconds. */
const MAX_SILENCE_MS = 45_000
const RECONNECT_MS = 500

/**
 * The events after a position, as they happen. If the connection breaks or is silent, the stream is opened again after
 * the last event. Ends after the inbox has ended. Rejects with MayflyError, or the signal's reason.
 * @internal
 */
export async function* inboxEvents(
  access: Access,
  path: string,
  options: {
    since: string
    signal?: AbortSignal | undefined
    labels?: Readonly<Record<string, string>> | undefined
    /** Whether they end with the inbox. */
    isOfInbox: boolean
  },
): AsyncGenerator<InboxEvent, void> {
  const { signal, labels, isOfInbox } = options
  let cursor = options.since
  let body = await open()
  while (body !== null) {
    for await (const event of readEvents(body, signal)) {
      cursor = event.id
      yield event
      if (isOfInbox && 'ended_at' in event.data.data) return
    }
    await pause(RECONNECT_MS, signal)
    body = await open().catch(nullIfEnded)
  }

  function open(): Promise<ReadableStream<Uint8Array> | null> {
    const options = { cursor, signal, labels, password: access.password }
    return access.connection.stream(`${path}/events`, options, 'text/event-stream')
  }
}

/** The inbox may end while the stream is not open. */
function nullIfEnded(error: unknown): null {
  if (error instanceof ApiError && error.status === 410) return null
  throw error
}

/** The events of one response (https://html.spec.whatwg.org/multipage/server-sent-events.html). Ends if it breaks. */
async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<InboxEvent, void> {
  const reader = body.getReader()
  const cancel = () => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', cancel)
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      signal?.throwIfAborted()
      const silence = setTimeout(cancel, MAX_SILENCE_MS)
      // A broken connection rejects. The caller opens the stream again.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
      clearTimeout(silence)
      signal?.throwIfAborted()
      if (done || value === undefined) return
      text += decoder.decode(value, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = parseEvent(block)
        if (event !== null) yield event
      }
    }
  } finally {
    signal?.removeEventListener('abort', cancel)
    cancel()
  }
}

/** Null for a comment, or a block without data. */
function parseEvent(block: string): InboxEvent | null {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? []
    fields.set(name, name === 'data' && fields.has('data') ? `${fields.get('data') ?? ''}\n${value}` : value)
  }
  const [id, data] = [fields.get('id'), fields.get('data')]
  if (id === undefined || data === undefined) return null
  const parsed = JSON.parse(data) as Schemas['EventBody']
  return { id, event: parsed.type, data: parsed }
}
