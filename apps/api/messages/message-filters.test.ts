import { messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { addNearest, matches, mismatches, type NearMiss } from './message-filters.js'

/** More characters than are searched at once. */
const LONG = 300_000

async function mailWith(text: string): Promise<ParsedMail> {
  const mail = await parseMail(Buffer.from('Subject: One\r\n\r\n'), anyEnvelope)
  return { ...mail, text, html: null, htmlText: null }
}

describe('the filter by text', () => {
  it.each([0, 262_139, 262_144, 262_150, LONG])(
    'finds words in upper or lower case in a long text, at index %i',
    async (at) => {
      const text = `${'x'.repeat(at)}Your ΟΔΟΣ İs here${'x'.repeat(LONG - at)}`
      const mail = await mailWith(text)
      for (const wanted of ['your ΟΔΟΣ', 'YOUR', 'İS HERE']) {
        expect([wanted, await matches(mail, { text: wanted })]).toEqual([wanted, true])
      }
      expect(await matches(mail, { text: 'here your' })).toBe(false)
    },
  )

  it('lets other work run during a long search', async () => {
    const mail = await mailWith('ä'.repeat(10 * LONG))
    let turns = 0
    const counting = setInterval(() => (turns += 1), 0)
    await matches(mail, { text: 'nowhere' })
    clearInterval(counting)
    expect(turns).toBeGreaterThan(1)
  })

  it('is reported with the other filters that do not match', async () => {
    const mail = await mailWith('Hello')
    expect(await mismatches(mail, { subject: 'two', text: 'nowhere', has_code: true })).toEqual([
      'subject does not contain "two"',
      'there is no code',
      'text does not contain "nowhere"',
    ])
  })
})

const miss = (offset: number, mismatches: number): NearMiss => ({
  id: messageId(offset),
  subject: String(offset),
  receivedAt: minute(offset),
  offset,
  mismatches: Array.from({ length: mismatches }, (_, index) => String(index)),
})

/** Each as [offset, mismatches]. */
const nearestOf = (misses: [number, number][]) =>
  misses
    .map(([offset, mismatches]) => miss(offset, mismatches))
    .reduce<readonly NearMiss[]>(addNearest, [])
    .map(({ offset }) => offset)

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
    expect(nearestOf(seven)).toEqual([4, 2, 7, 5, 1])
    expect(nearestOf(seven.toReversed())).toEqual([4, 2, 7, 5, 1])
  })

  it('are all messages if there are fewer than five', () => {
    expect(nearestOf(seven.slice(0, 2))).toEqual([2, 1])
    expect(nearestOf([])).toEqual([])
  })
})
