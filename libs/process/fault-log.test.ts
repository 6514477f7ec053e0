import { faultLog } from './fault-log.js'

describe('the log of faults in the background', () => {
  let nowMs: number
  let lines: unknown[][]
  let log: ReturnType<typeof faultLog>

  beforeEach(() => {
    nowMs = 0
    lines = []
    log = faultLog({ error: (...line: unknown[]) => void lines.push(line) }, { nowMs: () => nowMs })
  })

  it('has the same one every ten seconds at most, and how often it came meanwhile', () => {
    const fault = new Error('away')
    for (nowMs = 0; nowMs <= 10_000; nowMs += 100) log(fault, 'passing signals')
    expect(lines).toEqual([
      [{ err: fault }, 'passing signals failed: tried again'],
      [{ err: fault, timesSince: 99 }, 'passing signals failed: tried again'],
    ])
  })

  it('has each one that is another', () => {
    log(new Error('away'), 'passing signals')
    log(new Error('away'), 'following inbox keys')
    log(new Error('full'), 'passing signals')
    expect(lines).toHaveLength(3)
  })
})
