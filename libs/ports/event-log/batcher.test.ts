import { Batcher, type BatcherOptions } from './batcher.js'
import { LogUnavailableError } from './event-log.js'

interface Write {
  items: readonly string[]
  /** Completes the write with a result for each item. */
  finish(): void
  fail(error: Error): void
}

/** A batcher of texts whose writes are completed by the test. */
function makeBatcher(limits: Partial<BatcherOptions<string, string>> = {}) {
  const writes: Write[] = []
  let started = Promise.withResolvers<Write>()
  const batcher = new Batcher<string, string>({
    maxItems: 100,
    maxBatchBytes: 1_000,
    maxQueuedBytes: 10_000,
    sizeOf: (text) => text.length,
    write(items) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>()
      const write = { items, finish: () => resolve(items.map((text) => `${text} written`)), fail: reject }
      writes.push(write)
      started.resolve(write)
      started = Promise.withResolvers<Write>()
      return promise
    },
    ...limits,
  })
  return { batcher, writes, nextWrite: () => started.promise }
}

describe('a batcher', () => {
  it('writes items of one turn of the event loop in one batch, and returns each its own result', async () => {
    const { batcher, nextWrite } = makeBatcher()
    const results = ['a', 'b', 'c'].map((text) => batcher.add(text))
    const write = await nextWrite()
    expect(write.items).toEqual(['a', 'b', 'c'])
    write.finish()
    expect(await Promise.all(results)).toEqual(['a written', 'b written', 'c written'])
  })

  it('collects items that arrive during a write in the next batch, in order', async () => {
    const { batcher, writes, nextWrite } = makeBatcher()
    const first = batcher.add('a')
    const write = await nextWrite()
    const rest = ['b', 'c'].map((text) => batcher.add(text))
    await new Promise(setImmediate)
    expect(writes).toHaveLength(1)
    const second = nextWrite()
    write.finish()
    await first
    expect((await second).items).toEqual(['b', 'c'])
    writes[1]?.finish()
    expect(await Promise.all(rest)).toEqual(['b written', 'c written'])
  })

  it('continues after it was idle', async () => {
    const { batcher, nextWrite } = makeBatcher()
    for (const text of ['a', 'b']) {
      const result = batcher.add(text)
      const write = await nextWrite()
      write.finish()
      expect(await result).toBe(`${text} written`)
      await new Promise(setImmediate)
    }
  })

  test.each([
    { limit: 'items', limits: { maxItems: 2 }, sent: ['a', 'b', 'c'], batches: [['a', 'b'], ['c']] },
    {
      limit: 'bytes',
      limits: { maxBatchBytes: 5 },
      sent: ['aa', 'bbb', 'c', 'dddd'],
      batches: [
        ['aa', 'bbb'],
        ['c', 'dddd'],
      ],
    },
    {
      limit: 'bytes, where a larger item is written alone',
      limits: { maxBatchBytes: 3 },
      sent: ['a', 'bbbbbbbb', 'c', 'd'],
      batches: [['a'], ['bbbbbbbb'], ['c', 'd']],
    },
  ])('limits a batch by $limit', async ({ limits, sent, batches }) => {
    const written: (readonly string[])[] = []
    const { batcher } = makeBatcher({
      ...limits,
      write(items) {
        written.push(items)
        return Promise.resolve(items)
      },
    })
    await Promise.all(sent.map((text) => batcher.add(text)))
    expect(written).toEqual(batches)
  })

  it('rejects items beyond the maximum of waiting bytes, until some are written', async () => {
    const { batcher, nextWrite } = makeBatcher({ maxQueuedBytes: 4 })
    const waiting = [batcher.add('aa'), batcher.add('bb')]
    await expect(batcher.add('c')).rejects.toThrow(LogUnavailableError)
    const write = await nextWrite()
    const later = batcher.add('c')
    const next = nextWrite()
    write.finish()
    await Promise.all(waiting)
    const last = await next
    last.finish()
    expect(await later).toBe('c written')
  })

  it('accepts an item larger than that maximum if nothing else waits', async () => {
    const { batcher, nextWrite } = makeBatcher({ maxQueuedBytes: 2 })
    const result = batcher.add('larger')
    const write = await nextWrite()
    write.finish()
    expect(await result).toBe('larger written')
  })

  it('rejects the items of a failed write with its cause, and continues with the next', async () => {
    const { batcher, nextWrite } = makeBatcher({ maxItems: 2 })
    const outcomes = Promise.allSettled(['a', 'b', 'c'].map((text) => batcher.add(text)))
    const cause = new Error('no space left')
    const write = await nextWrite()
    const next = nextWrite()
    write.fail(cause)
    const last = await next
    last.finish()
    const [a, b, c] = await outcomes
    for (const outcome of [a, b]) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'LogUnavailableError', cause } })
    }
    expect(c).toEqual({ status: 'fulfilled', value: 'c written' })
  })

  it('rejects only the items without a result', async () => {
    const { batcher } = makeBatcher({ write: () => Promise.resolve(['first']) })
    const [first, second] = await Promise.allSettled([batcher.add('a'), batcher.add('b')])
    expect(first).toEqual({ status: 'fulfilled', value: 'first' })
    expect(second).toMatchObject({ status: 'rejected', reason: { name: 'LogUnavailableError' } })
  })

  it('rejects new items when it closes, and waits for earlier ones', async () => {
    const { batcher, nextWrite } = makeBatcher({ maxItems: 1 })
    let isClosed = false
    const results = ['a', 'b'].map((text) => batcher.add(text))
    const first = await nextWrite()
    const closed = batcher.close().then(() => (isClosed = true))
    await expect(batcher.add('c')).rejects.toThrow(LogUnavailableError)
    const next = nextWrite()
    first.finish()
    const second = await next
    expect(isClosed).toBe(false)
    second.finish()
    await closed
    expect(await Promise.all(results)).toEqual(['a written', 'b written'])
  })

  it('closes at once if nothing waits', async () => {
    const { batcher } = makeBatcher()
    await expect(batcher.close()).resolves.toBeUndefined()
  })
})
