import type { Access } from './message.js'
import type { Schemas } from './options.js'

/** A server-sent event of an inbox. `id` is the position after it, for `since`. */
export interface InboxEvent {
  id: string
  event: Schemas['EventBody']['type']
  data: Schemas['EventBody']
}

const ENDING: readonly string[] = ['inbox.expired', 'inbox.deleted'] satisfies Schemas['EventBody']['type'][]

/**
 * The events after a position, as they happen. If the connection breaks, the stream is opened again after the last
 * event. Ends after the inbox has ended. Rejects with ApiError, UnreachableError, or the signal's reason.
 */
export async function* inboxEvents(
  access: Access,
  path: string,
  since: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<InboxEvent, void> {
  let cursor = since
  for (;;) {
    const options = { cursor, signal, password: access.password }
    const body = await access.connection.stream(`${path}/events`, options, { accept: 'text/event-stream' })
    for await (const event of readEvents(body, signal)) {
      cursor = event.id
      yield event
      if (ENDING.includes(event.event)) return
    }
  }
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
      // A broken connection rejects. The caller opens the stream again.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
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
