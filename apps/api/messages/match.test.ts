import type { ParsedMail } from '#libs/mail/message.js'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { matches, mismatches } from './message-filters.js'

/** More than is looked through at once. */
const LONG = 300_000

async function mailWith(text: string): Promise<ParsedMail> {
  const mail = await parseMail(Buffer.from('Subject: One\r\n\r\n'), anyEnvelope)
  return { ...mail, text, html: null, htmlText: null }
}

describe('the filter by text', () => {
  it.each([0, 262_139, 262_144, 262_150, LONG])(
    'finds words in either case in a long text, wherever they stand: at %i',
    async (at) => {
      const text = `${'x'.repeat(at)}Your ΟΔΟΣ İs here${'x'.repeat(LONG - at)}`
      const mail = await mailWith(text)
      for (const wanted of ['your ΟΔΟΣ', 'YOUR', 'İS HERE']) {
        expect([wanted, await matches(mail, { text: wanted })]).toEqual([wanted, true])
      }
      expect(await matches(mail, { text: 'here your' })).toBe(false)
    },
  )

  it('lets others have their turn meanwhile', async () => {
    const mail = await mailWith('ä'.repeat(10 * LONG))
    let turns = 0
    const counting = setInterval(() => (turns += 1), 0)
    await matches(mail, { text: 'nowhere' })
    clearInterval(counting)
    expect(turns).toBeGreaterThan(1)
  })

  it('is told with the others that do not match', async () => {
    const mail = await mailWith('Hello')
    expect(await mismatches(mail, { subject: 'two', text: 'nowhere', has_code: true })).toEqual([
      'subject does not contain "two"',
      'there is no code',
      'text does not contain "nowhere"',
    ])
  })
})
