import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { until } from '#test/harness/until.js'
import { beforeDeadline, DeadlineError, PeriodicTask, SharedRun } from './timing.js'

describe('a deadline', () => {
  it('is not missed by an answer that arrived while the process was busy', async () => {
    const { stdout } = spawn('echo', ['answer'])
    const answer = beforeDeadline(100, once(stdout, 'data'))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000)
    expect(String(await answer)).toBe('answer\n')
  })

  it('ends the wait for an answer that does not arrive', async () => {
    const none = Promise.withResolvers<never>()
    await expect(beforeDeadline(10, none.promise)).rejects.toThrow(DeadlineError)
  })
})

describe('a periodic task', () => {
  it('runs at once and again, never twice at the same time', async () => {
    let running = 0
    let maxRunning = 0
    let runs = 0
    const task = new PeriodicTask({
      everyMs: 1,
      async work() {
        running += 1
        maxRunning = Math.max(maxRunning, running)
        await Promise.resolve()
        running -= 1
        runs += 1
      },
    })
    task.start()
    await until('several runs', () => runs >= 5)
    await task.stop()
    expect(maxRunning).toBe(1)
  })

  it('aborts the signal of the run in progress when stopped, and waits for its end', async () => {
    const finish = Promise.withResolvers<undefined>()
    const signals: AbortSignal[] = []
    const task = new PeriodicTask({
      everyMs: 1,
      async work(signal) {
        signals.push(signal)
        await finish.promise
      },
    })
    task.start()
    let isStopped = false
    const stopped = task.stop().then(() => (isStopped = true))
    expect(signals).toMatchObject([{ aborted: true }])
    await Promise.resolve()
    expect(isStopped).toBe(false)
    finish.resolve(undefined)
    await stopped
    expect(signals).toHaveLength(1)
  })

  it('never runs if it is stopped before its first run', async () => {
    let runs = 0
    const task = new PeriodicTask({
      everyMs: 1,
      firstAfterMs: 60_000,
      work() {
        runs += 1
        return Promise.resolve()
      },
    })
    task.start()
    await task.stop()
    expect(runs).toBe(0)
  })
})

/** A shared run of a lookup whose answers the test gives. `requests` has one entry for each run. */
function makeLookup() {
  const requests: PromiseWithResolvers<string>[] = []
  let onRequest = Promise.withResolvers<undefined>()
  const lookup = new SharedRun(() => {
    const answer = Promise.withResolvers<string>()
    requests.push(answer)
    onRequest.resolve(undefined)
    onRequest = Promise.withResolvers()
    return answer.promise
  }, 5)
  return { lookup, requests, nextRequest: () => onRequest.promise }
}

describe('a shared run', () => {
  it('runs once for all callers that come before it starts', async () => {
    const { lookup, requests, nextRequest } = makeLookup()
    const answers = Promise.all([lookup.get(), lookup.get(), lookup.get()])
    await nextRequest()
    requests[0]?.resolve('one')
    expect(await answers).toEqual(['one', 'one', 'one'])
    expect(requests).toHaveLength(1)
  })

  it('gives no caller the result of a run that started before its call', async () => {
    const { lookup, requests, nextRequest } = makeLookup()
    const early = lookup.get()
    await nextRequest()
    const late = [lookup.get(), lookup.get()]
    const secondRequest = nextRequest()
    requests[0]?.resolve('old')
    expect(await early).toBe('old')
    await secondRequest
    requests[1]?.resolve('new')
    expect(await Promise.all(late)).toEqual(['new', 'new'])
    expect(requests).toHaveLength(2)
  })

  it('runs again after a failure', async () => {
    const { lookup, requests, nextRequest } = makeLookup()
    const failed = lookup.get()
    await nextRequest()
    requests[0]?.reject(new Error('away'))
    await expect(failed).rejects.toThrow('away')
    const again = lookup.get()
    await nextRequest()
    requests[1]?.resolve('back')
    expect(await again).toBe('back')
  })

  it('starts its runs at least the given time apart, however often it is called', async () => {
    const startedAt: number[] = []
    const run = new SharedRun(() => {
      startedAt.push(performance.now())
      return Promise.resolve()
    }, 30)
    for (let calls = 0; calls < 4; calls += 1) await run.get()
    const pauses = startedAt.slice(1).map((at, index) => at - (startedAt[index] ?? 0))
    for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(30)
  })

  it('is idle once no run is in progress or waiting to start', async () => {
    const { lookup, requests, nextRequest } = makeLookup()
    const first = lookup.get()
    await nextRequest()
    const second = lookup.get()
    let isIdle = false
    const idle = lookup.idle().then(() => (isIdle = true))
    const secondRequest = nextRequest()
    requests[0]?.resolve('one')
    await first
    await secondRequest
    expect(isIdle).toBe(false)
    requests[1]?.resolve('two')
    await Promise.all([second, idle])
    expect(isIdle).toBe(true)
  })
})
