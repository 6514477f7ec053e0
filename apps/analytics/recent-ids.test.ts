import fc from 'fast-check'
import { RecentIds } from './event-rows.js'

describe('recent ids', () => {
  it('are new the first time, and not again within as many as are remembered', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.nat({ max: 60 })), (least, numbers) => {
        const recent = new RecentIds(least)
        const distinct: number[] = []
        for (const n of numbers) {
          const isNew = recent.isNew(String(n))
          if (distinct.slice(-least).includes(n)) expect(isNew).toBe(false)
          if (!distinct.includes(n)) expect(isNew).toBe(true)
          if (isNew) distinct.push(n)
        }
      }),
    )
  })
})
