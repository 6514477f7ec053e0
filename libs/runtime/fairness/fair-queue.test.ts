import { FairQueue } from './fair-queue.js'

const any = () => true

function queueOf(...items: [owner: string, item: number][]): FairQueue<number> {
  const queue = new FairQueue<number>()
  for (const [owner, item] of items) queue.add(owner, item)
  return queue
}

function all(queue: FairQueue<number>): number[] {
  const items: number[] = []
  for (let item = queue.take(any); item !== null; item = queue.take(any)) items.push(item)
  return items
}

describe('a fair queue', () => {
  it('serves owners in turn, and the items of an owner in order', () => {
    expect(all(queueOf(['a', 1], ['a', 2], ['a', 3], ['b', 4], ['c', 5], ['b', 6]))).toEqual([
      1, 4, 5, 2, 6, 3,
    ])
  })

  it('skips items that may not be taken, which keep their turn', () => {
    const queue = queueOf(['a', 1], ['b', 2])
    expect(queue.take((_, owner) => owner !== 'a')).toBe(2)
    expect(queue.take((item) => item > 1)).toBeNull()
    expect(all(queue)).toEqual([1])
  })

  it('can add an item before the other items of its owner', () => {
    const queue = queueOf(['a', 1], ['a', 2])
    const first = queue.take(any)
    queue.addFirst('a', first ?? 0)
    expect([queue.size, ...all(queue)]).toEqual([2, 1, 2])
  })

  it('removes matching items', () => {
    const queue = queueOf(['a', 1], ['a', 2], ['b', 3])
    expect(queue.remove((item) => item !== 2)).toEqual([1, 3])
    expect([queue.size, ...all(queue)]).toEqual([1, 2])
  })
})
