import { once } from 'node:events'
import { EventStream, eventText, type EndOfEvents } from './event-stream.js'

describe('the text of an event', () => {
  it('has a line for each part, and then an empty line', () => {
    const text = eventText({
      id: 'AAAA',
      event: 'message.received',
      data: JSON.stringify({ text: 'a\r\nb\rc' }),
    })
    expect(text).toBe('id: AAAA\nevent: message.received\ndata: {"text":"a\\r\\nb\\rc"}\n\n')
  })
})

it('lets its generator release resources if the client leaves between two chunks', async () => {
  let isReleased = false
  async function* chunks(): AsyncGenerator<string, EndOfEvents | undefined> {
    try {
      yield 'an event'
      await new Promise(setImmediate)
      yield 'another'
    } finally {
      isReleased = true
    }
    return undefined
  }
  const [wake, onOutcome] = [() => undefined, () => undefined]
  const stream = new EventStream(chunks, wake, onOutcome)
  await once(stream, 'readable')
  stream.destroy()
  await once(stream, 'close')
  await new Promise(setImmediate)
  expect(isReleased).toBe(true)
})
