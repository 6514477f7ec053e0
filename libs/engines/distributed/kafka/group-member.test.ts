import { ExpectedRetryError } from '#libs/runtime/errors.js'
import { asExpectedRetry } from './group-member.js'

/** An error as kafkajs creates it from a broker's response. */
const broker = (type: string, code: number) =>
  Object.assign(new Error('from the broker'), { name: 'KafkaJSProtocolError', type, code, retriable: true })

describe('a member that cannot join its group', () => {
  it.each([
    ['GROUP_LOAD_IN_PROGRESS', 14],
    ['GROUP_COORDINATOR_NOT_AVAILABLE', 15],
    ['NOT_COORDINATOR_FOR_GROUP', 16],
  ])('treats %s as an expected retry for 30 s', (type, code) => {
    const error = broker(type, code)
    expect(asExpectedRetry(error, 0)).toBeInstanceOf(ExpectedRetryError)
    expect(asExpectedRetry(error, 30_001)).toBe(error)
  })

  it('reports any other error unchanged', () => {
    for (const error of [broker('GROUP_AUTHORIZATION_FAILED', 30), new Error('connection refused')]) {
      expect(asExpectedRetry(error, 0)).toBe(error)
    }
  })
})
