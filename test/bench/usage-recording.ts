import { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import { ACCOUNT, usageEventOf } from './usage-events.js'

/** Fewer than the recorder keeps. */
const AT_ONCE = 20_000
const TURNS = 5
const NEVER_MS = 3_600_000
const TENANT = { accountId: ACCOUNT, environment: 'staging' }

/** Of one event, in microseconds. */
export interface RecordingCost {
  /** For which the request's answer, or those behind it, wait. */
  synchronous: number
  /** CPU of all threads, until it is durable. */
  cpu: number
}

/** What it costs to record what a request was. */
export async function recordingCost(log: EventLog): Promise<RecordingCost> {
  let [ms, cpuUs] = [0, 0]
  for (let turn = 0; turn < TURNS; turn += 1) {
    const recorder = new UsageRecorder({
      ...{ log, source: '/mayfly/api', now: () => new Date(), everyMs: NEVER_MS },
      onLost: (count, error) => {
        throw new Error(`${count} events were lost`, { cause: error })
      },
    })
    const before = process.cpuUsage()
    const started = performance.now()
    // One of ten, which is a request.
    for (let number = 0; number < AT_ONCE; number += 1)
      recorder.record(usageEventOf(number * 10, new Date()), TENANT)
    ms += performance.now() - started
    await recorder.close()
    const { user, system } = process.cpuUsage(before)
    cpuUs += user + system
  }
  const events = AT_ONCE * TURNS
  return { synchronous: (ms * 1_000) / events, cpu: cpuUs / events }
}
