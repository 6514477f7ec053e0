import { once } from 'node:events'
import type { EndOfEvents } from './inbox-feed.js'
import { EventStream } from './event-stream.js'

it('has what makes it give back what it holds, where its client leaves between two chunks', async () => {
  let isGivenBack = false
  async function* chunks(): AsyncGenerator<string, EndOfEvents | undefined> {
    try {
      yield 'an event'
      await new Promise(setImmediate)
      yield 'another'
    } finally {
      isGivenBack = true
    }
    return undefined
  }
  const [wake, onOutcome] = [() => undefined, () => undefined]
  const stream = new EventStream(chunks, wake, onOutcome)
  await once(stream, 'readable')
  stream.destroy()
  await once(stream, 'close')
  await new Promise(setImmediate)
  expect(isGivenBack).toBe(true)
})
