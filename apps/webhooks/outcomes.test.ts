import pino from 'pino'
import { LogUnavailableError, type Position } from '#libs/ports/event-log/event-log.js'
import { until } from '#test/harness/until.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { DeliveryEvent } from '#libs/domain/webhook/events.js'
import { Outcomes } from './outcomes.js'

const event: DeliveryEvent = {
  ...{ type: 'DeliverySucceeded', attempt: 1, attemptedAt: new Date(0), latencyMs: 3, answer: null },
  ...{ webhookId: idFromBytes('whk', Buffer.alloc(16)), deliveryId: idFromBytes('dlv', Buffer.alloc(16)) },
  status: 204,
}
const attribution = { accountId: idFromBytes('acc', Buffer.alloc(16)), environment: 'staging', keyId: null }
const position: Position = { topic: 'webhook-events', partition: 0, offset: 7 }

/** Each call of the recorder rejects with the next error, until none is left. */
function outcomesWith(errors: Error[]): { outcomes: Outcomes; recorded: DeliveryEvent[] } {
  const recorded: DeliveryEvent[] = []
  const record = (): Promise<Position> => {
    const error = errors.shift()
    if (error !== undefined) return Promise.reject(error)
    recorded.push(event)
    return Promise.resolve(position)
  }
  const outcomes = new Outcomes({
    recorder: { record },
    deliveries: { failingSince: () => Promise.resolve(null) },
    now: () => new Date(),
    logger: pino({ enabled: false }),
  })
  return { outcomes, recorded }
}

const unavailable = () => new LogUnavailableError('the log is unavailable')

describe('the outcome of an attempt', () => {
  it('is kept while the log is unavailable, and recorded when it is available again', async () => {
    const { outcomes, recorded } = outcomesWith([unavailable()])
    const recording = outcomes.record(event, attribution)
    await until('the log to be unavailable', () => outcomes.isLogUnavailable)
    await recording
    expect(recorded).toEqual([event])
    expect(outcomes.isLogUnavailable).toBe(false)
  })

  it('is given up if the process ends first', async () => {
    const { outcomes, recorded } = outcomesWith([unavailable(), unavailable(), unavailable()])
    const recording = outcomes.record(event, attribution)
    await until('the log to be unavailable', () => outcomes.isLogUnavailable)
    outcomes.giveUp()
    await expect(recording).rejects.toThrow(LogUnavailableError)
    expect([recorded, outcomes.isLogUnavailable]).toEqual([[], false])
  })

  it('is not retried if the log refuses the event', async () => {
    const { outcomes } = outcomesWith([new TypeError('no such event')])
    await expect(outcomes.record(event, attribution)).rejects.toThrow('no such event')
    expect(outcomes.isLogUnavailable).toBe(false)
  })
})
