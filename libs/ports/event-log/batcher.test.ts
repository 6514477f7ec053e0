import { Batcher, type BatcherOptions } from './batcher.js'
import { LogUnavailableError } from './event-log.js'

interface Write {
  items: readonly string[]
  /** Ends the write well, with each item's result. */
  finish(): void
  fail(error: Error): void
}

/** A batcher of texts whose writes wait to be ended by the test. */
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
  it('writes in one batch what comes in one turn, and gives each item its own result', async () => {
    const { batcher, nextWrite } = makeBatcher()
    const results = ['a', 'b', 'c'].map((text) => batcher.add(text))
    const write = await nextWrite()
    expect(write.items).toEqual(['a', 'b', 'c'])
    write.finish()
    expect(await Promise.all(results)).toEqual(['a written', 'b written', 'c written'])
  })

  it('gathers what comes during a write into the next one, in order', async () => {
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

  it('begins anew once it has been idle', async () => {
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
      limit: 'bytes, where an item larger than a batch goes alone',
      limits: { maxBatchBytes: 3 },
      sent: ['a', 'bbbbbbbb', 'c', 'd'],
      batches: [['a'], ['bbbbbbbb'], ['c', 'd']],
    },
  ])('bounds a batch in $limit', async ({ limits, sent, batches }) => {
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

  it('refuses what passes the bound of what waits, and takes more once that is written', async () => {
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

  it('takes an item larger than the bound where nothing else waits', async () => {
    const { batcher, nextWrite } = makeBatcher({ maxQueuedBytes: 2 })
    const result = batcher.add('larger')
    const write = await nextWrite()
    write.finish()
    expect(await result).toBe('larger written')
  })

  it('rejects the items of a failed write, with its cause, and goes on with the next', async () => {
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

  it('rejects only the items that the write gave no result', async () => {
    const { batcher } = makeBatcher({ write: () => Promise.resolve(['first']) })
    const [first, second] = await Promise.allSettled([batcher.add('a'), batcher.add('b')])
    expect(first).toEqual({ status: 'fulfilled', value: 'first' })
    expect(second).toMatchObject({ status: 'rejected', reason: { name: 'LogUnavailableError' } })
  })

  it('takes nothing once it is being closed, and waits for all that came before', async () => {
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

  it('closes at once where nothing waits', async () => {
    const { batcher } = makeBatcher()
    await expect(batcher.close()).resolves.toBeUndefined()
  })
})
