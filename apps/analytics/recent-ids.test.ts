import fc from 'fast-check'
import { RecentIds } from './event-rows.js'

describe('recent ids', () => {
  it('are new once, and known for at least the minimum number of ids', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.nat({ max: 60 })), (minimum, numbers) => {
        const recent = new RecentIds(minimum)
        const distinct: number[] = []
        for (const n of numbers) {
          const isNew = recent.isNew(String(n))
          if (distinct.slice(-minimum).includes(n)) expect(isNew).toBe(false)
          if (!distinct.includes(n)) expect(isNew).toBe(true)
          if (isNew) distinct.push(n)
        }
      }),
    )
  })
})
