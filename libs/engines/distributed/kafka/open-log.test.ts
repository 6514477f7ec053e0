import { isSettling, onceSettled } from './open-log.js'

const unknownTopic = Object.assign(new Error('This server does not host this topic-partition'), {
  type: 'UNKNOWN_TOPIC_OR_PARTITION',
})

describe('work while brokers settle', () => {
  it('is repeated until they have settled', async () => {
    const answers = [unknownTopic, new Error('retried', { cause: unknownTopic }), null]
    const work = () => {
      const error = answers.shift()
      return error === null
        ? Promise.resolve('done')
        : Promise.reject(error ?? new Error('repeated too often'))
    }
    expect(await onceSettled(60_000, work)).toBe('done')
    expect(answers).toEqual([])
  })

  it('fails after the time limit, and at once for another error', async () => {
    await expect(onceSettled(0, () => Promise.reject(unknownTopic))).rejects.toBe(unknownTopic)
    const denied = Object.assign(new Error('denied'), { type: 'TOPIC_AUTHORIZATION_FAILED' })
    let tries = 0
    const work = () => {
      tries += 1
      return Promise.reject(denied)
    }
    await expect(onceSettled(60_000, work)).rejects.toBe(denied)
    expect(tries).toBe(1)
  })

  it.each([null, undefined, 'text', new Error('other'), { type: 1 }])(
    '%p does not mean that they have not settled',
    (error) => {
      expect(isSettling(error)).toBe(false)
    },
  )
})
