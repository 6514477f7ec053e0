import { messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { created } from '#libs/domain/inbox/inbox.test-support.js'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { addMiss, NO_MISSES } from './near-misses.js'

const mail = parseMail(Buffer.from('Subject: One\r\n\r\n'), anyEnvelope)

/** The nearest of messages that are received in the given minutes, with so many mismatches. */
const nearestOf = (all: [minute: number, mismatches: number][]) =>
  all
    .reduce((misses, [number, count]) => {
      const ids = { id: messageId(number), inboxId: created.inboxId }
      const message = { ...ids, receivedAt: minute(number), mail, bytes: 0 }
      return addMiss(
        misses,
        message,
        Array.from({ length: count }, (_, index) => String(index)),
      )
    }, NO_MISSES)
    .nearest.map(({ receivedAt }) => receivedAt)

describe('the nearest messages', () => {
  const seven: [number, number][] = [
    [1, 2],
    [2, 1],
    [3, 3],
    [4, 1],
    [5, 2],
    [6, 3],
    [7, 2],
  ]

  it('are the five with the fewest mismatches, then the newest, in any order of examination', () => {
    expect(nearestOf(seven)).toEqual([4, 2, 7, 5, 1].map(minute))
    expect(nearestOf(seven.toReversed())).toEqual([4, 2, 7, 5, 1].map(minute))
  })

  it('are all messages if there are fewer than five', () => {
    expect(nearestOf(seven.slice(0, 2))).toEqual([2, 1].map(minute))
    expect(nearestOf([])).toEqual([])
  })
})
