import { messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { nearestWith, type NearMiss } from './message-filters.js'

const miss = (offset: number, mismatches: number): NearMiss => ({
  id: messageId(offset),
  subject: String(offset),
  receivedAt: minute(offset),
  offset,
  mismatches: Array.from({ length: mismatches }, (_, index) => String(index)),
})

/** Each as [offset, mismatches]. */
const nearestOf = (misses: [number, number][]) =>
  misses
    .map(([offset, mismatches]) => miss(offset, mismatches))
    .reduce<readonly NearMiss[]>(nearestWith, [])
    .map(({ offset }) => offset)

describe('the nearest messages', () => {
  const seven: [number, number][] = [
    [1, 2],
    [2, 1],
    [3, 3],
    [4, 1],
    [5, 2],
    [6, 3],
    [7, 2],
  ]

  it('are the five with the fewest mismatches, then the newest, in whatever order they were looked at', () => {
    expect(nearestOf(seven)).toEqual([4, 2, 7, 5, 1])
    expect(nearestOf(seven.toReversed())).toEqual([4, 2, 7, 5, 1])
  })

  it('are all where there are fewer', () => {
    expect(nearestOf(seven.slice(0, 2))).toEqual([2, 1])
    expect(nearestOf([])).toEqual([])
  })
})
