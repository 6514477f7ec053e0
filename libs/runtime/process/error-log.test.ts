import { ExpectedRetryError } from '#libs/runtime/errors.js'
import { errorLog } from './error-log.js'

describe('the log of background failures', () => {
  let nowMs: number
  let lines: unknown[][]
  let debugLines: unknown[][]
  let log: ReturnType<typeof errorLog>

  beforeEach(() => {
    nowMs = 0
    lines = []
    debugLines = []
    const error = (...line: unknown[]) => void lines.push(line)
    const debug = (...line: unknown[]) => void debugLines.push(line)
    log = errorLog({ error, debug }, { nowMs: () => nowMs })
  })

  it('has the same failure at most every ten seconds, with the number of times it occurred', () => {
    const failure = new Error('away')
    for (nowMs = 0; nowMs <= 10_000; nowMs += 100) log(failure, 'passing signals')
    expect(lines).toEqual([
      [{ err: failure }, 'passing signals failed: retrying'],
      [{ err: failure, timesSince: 99 }, 'passing signals failed: retrying'],
    ])
  })

  it('has an expected retry at level debug only', () => {
    log(new ExpectedRetryError('the coordinator is loading'), 'joining a group')
    expect(lines).toEqual([])
    expect(debugLines).toEqual([[{ reason: 'the coordinator is loading' }, 'joining a group: retrying']])
  })

  it('has each different failure', () => {
    log(new Error('away'), 'passing signals')
    log(new Error('away'), 'following inbox keys')
    log(new Error('full'), 'passing signals')
    expect(lines).toHaveLength(3)
  })
})
