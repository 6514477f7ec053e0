import pino from 'pino'
import { LogUnavailableError, type Position } from '#libs/ports/event-log/event-log.js'
import { until } from '#test/harness/until.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { DeliveryEvent } from '#libs/domain/webhook/webhook-events.js'
import { Outcomes } from './outcomes.js'

const event: DeliveryEvent = {
  ...{ type: 'DeliverySucceeded', attempt: 1, attemptedAt: new Date(0), latencyMs: 3, answer: null },
  ...{ webhookId: idFromBytes('whk', Buffer.alloc(16)), deliveryId: idFromBytes('dlv', Buffer.alloc(16)) },
  status: 204,
}
const whose = { accountId: idFromBytes('acc', Buffer.alloc(16)), environment: 'staging', keyId: null }
const position: Position = { topic: 'webhook-events', partition: 0, offset: 7 }

/** Fails while the list has faults, in turn. */
function outcomesWith(faults: Error[]): { outcomes: Outcomes; told: DeliveryEvent[] } {
  const told: DeliveryEvent[] = []
  const record = (): Promise<Position> => {
    const fault = faults.shift()
    if (fault !== undefined) return Promise.reject(fault)
    told.push(event)
    return Promise.resolve(position)
  }
  return {
    outcomes: new Outcomes({ recorder: { record }, logger: pino({ enabled: false }) }),
    told,
  }
}

const away = () => new LogUnavailableError('the log is away')

describe('the outcome of an attempt', () => {
  it('is kept while the log is away, and told when it is back', async () => {
    const { outcomes, told } = outcomesWith([away()])
    const recording = outcomes.record(event, whose)
    await until('the log to be missed', () => outcomes.isLogAway)
    await recording
    expect(told).toEqual([event])
    expect(outcomes.isLogAway).toBe(false)
  })

  it('is given up where the process ends first', async () => {
    const { outcomes, told } = outcomesWith([away(), away(), away()])
    const recording = outcomes.record(event, whose)
    await until('the log to be missed', () => outcomes.isLogAway)
    outcomes.giveUp()
    await expect(recording).rejects.toThrow(LogUnavailableError)
    expect([told, outcomes.isLogAway]).toEqual([[], false])
  })

  it('that the log will never take is not tried again', async () => {
    const { outcomes } = outcomesWith([new TypeError('no such event')])
    await expect(outcomes.record(event, whose)).rejects.toThrow('no such event')
    expect(outcomes.isLogAway).toBe(false)
  })
})
