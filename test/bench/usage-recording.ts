import { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import { ACCOUNT, usageEventOf } from './usage-events.js'

/** Fewer than the recorder buffers. */
const AT_ONCE = 20_000
const TURNS = 5
const NEVER_MS = 3_600_000
const TENANT = { accountId: ACCOUNT, environment: 'staging' }

/** Cost of one event, in microseconds. */
export interface RecordingCost {
  /** Time on the main thread that delays this request or the next ones. */
  synchronous: number
  /** CPU time of all threads until the event is durable. */
  cpu: number
}

/** The cost of recording a request. */
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
    // Multiples of ten are requests.
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
