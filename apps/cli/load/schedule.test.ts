import fc from 'fast-check'
import { Schedule } from './schedule.js'

const rates = fc.double({ min: 0.01, max: 100_000, noNaN: true })
const starts = fc.double({ min: 0, max: 1e9, noNaN: true })

/** The indexes that are taken until none is due. */
function takeAll(schedule: Schedule, nowMs: number): number[] {
  const taken: number[] = []
  for (let index = schedule.take(nowMs); index !== null; index = schedule.take(nowMs)) taken.push(index)
  return taken
}

describe('arrivals at a fixed rate', () => {
  it('begin at the start and have equal distances', () => {
    const schedule = new Schedule(500, 1_000, 2_000)
    expect([0, 1, 2, 500].map((index) => schedule.timeOf(index))).toEqual([2_000, 2_002, 2_004, 3_000])
  })

  it('are each taken once, in order, and never before their time, however late', () => {
    const steps = fc.array(fc.double({ min: 0, max: 5_000, noNaN: true }), { maxLength: 20 })
    fc.assert(
      fc.property(rates, starts, fc.nat(300), steps, (perSecond, startMs, total, stepsMs) => {
        const schedule = new Schedule(perSecond, total, startMs)
        const taken: number[] = []
        let nowMs = startMs - 1
        for (const stepMs of stepsMs) {
          nowMs += stepMs
          const due = takeAll(schedule, nowMs)
          for (const index of due) expect(schedule.timeOf(index)).toBeLessThanOrEqual(nowMs)
          taken.push(...due)
          expect(schedule.nextMs === null || schedule.nextMs > nowMs).toBe(true)
        }
        taken.push(...takeAll(schedule, Infinity))
        expect(taken).toEqual(Array.from({ length: total }, (_, index) => index))
      }),
    )
  })

  it('wait if they are not taken, and the lag is that of the oldest', () => {
    const schedule = new Schedule(1_000, 100, 0)
    expect(schedule.lagMs(10)).toBe(10)
    schedule.take(10)
    expect(schedule.lagMs(10)).toBe(9)
    takeAll(schedule, 10)
    expect(schedule.lagMs(10)).toBe(0)
  })

  it('end with those taken once it is stopped', () => {
    const schedule = new Schedule(1_000, 100, 0)
    schedule.take(50)
    schedule.stop()
    expect(schedule.take(50)).toBeNull()
    expect(schedule.nextMs).toBeNull()
    expect(schedule.takenCount).toBe(1)
  })
})
