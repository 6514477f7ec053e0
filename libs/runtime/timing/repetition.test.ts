import { until } from '#test/harness/until.js'
import { Repetition } from './repetition.js'

describe('a repetition', () => {
  it('does its work at once and again, never twice at once', async () => {
    let underWay = 0
    let most = 0
    let times = 0
    const repetition = new Repetition({
      everyMs: 1,
      async work() {
        underWay += 1
        most = Math.max(most, underWay)
        await Promise.resolve()
        underWay -= 1
        times += 1
      },
    })
    repetition.start()
    await until('several times', () => times >= 5)
    await repetition.stop()
    expect(most).toBe(1)
  })

  it('stops once the work under way is over, which it tells', async () => {
    const finish = Promise.withResolvers<undefined>()
    const signals: AbortSignal[] = []
    const repetition = new Repetition({
      everyMs: 1,
      async work(signal) {
        signals.push(signal)
        await finish.promise
      },
    })
    repetition.start()
    let isStopped = false
    const stopped = repetition.stop().then(() => (isStopped = true))
    expect(signals).toMatchObject([{ aborted: true }])
    await Promise.resolve()
    expect(isStopped).toBe(false)
    finish.resolve(undefined)
    await stopped
    expect(signals).toHaveLength(1)
  })

  it('that is stopped before its first time does nothing', async () => {
    let times = 0
    const repetition = new Repetition({
      everyMs: 1,
      firstAfterMs: 60_000,
      work() {
        times += 1
        return Promise.resolve()
      },
    })
    repetition.start()
    await repetition.stop()
    expect(times).toBe(0)
  })
})
