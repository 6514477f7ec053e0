import { minute } from '#libs/domain/inbox/inbox.test-support.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { matches, mismatches, type MatchFilters } from './message-filters.js'

/** More characters than are searched at once. */
const LONG = 300_000

type Matchable = Pick<OpenedMessage, 'mail' | 'receivedAt'>

async function messageWith(text: string, header = ''): Promise<Matchable> {
  const mail = await parseMail(Buffer.from(`Subject: One\r\n${header}\r\n`), anyEnvelope)
  return { mail: { ...mail, text, html: null, htmlText: null }, receivedAt: minute(5) }
}

describe('the filter by text', () => {
  it.each([0, 262_139, 262_144, 262_150, LONG])(
    'finds words in upper or lower case in a long text, at index %i',
    async (at) => {
      const text = `${'x'.repeat(at)}Your ΟΔΟΣ İs here${'x'.repeat(LONG - at)}`
      const message = await messageWith(text)
      for (const wanted of ['your ΟΔΟΣ', 'YOUR', 'İS HERE']) {
        expect([wanted, await matches(message, { text: wanted })]).toEqual([wanted, true])
      }
      expect(await matches(message, { text: 'here your' })).toBe(false)
    },
  )

  it('lets other work run during a long search', async () => {
    const message = await messageWith('ä'.repeat(10 * LONG))
    let turns = 0
    const counting = setInterval(() => (turns += 1), 0)
    await matches(message, { text: 'nowhere' })
    clearInterval(counting)
    expect(turns).toBeGreaterThan(1)
  })

  it('is reported with the other filters that do not match', async () => {
    const message = await messageWith('Hello')
    expect(await mismatches(message, { subject: 'two', text: 'nowhere', has_code: true })).toEqual([
      'subject does not contain "two"',
      'there is no code',
      'text does not contain "nowhere"',
    ])
  })
})

describe('the filters by time, addressee and header', () => {
  const header = 'To: Ann <ann@mayfly.test>\r\nCc: bob@mayfly.test\r\nX-Tag: red\r\nX-Tag: blue: green\r\n'
  const time = (number: number) => minute(number).toISOString()
  const [before, at, after] = [time(4), time(5), time(6)]

  it.each<{ filters: MatchFilters; expected: string[] }>([
    { filters: { since: at, until: after }, expected: [] },
    { filters: { since: after }, expected: [`received_at is before ${after}`] },
    { filters: { until: at }, expected: [`received_at is not before ${at}`] },
    { filters: { since: before, to: 'ANN@' }, expected: [] },
    { filters: { to: 'ann' }, expected: [] },
    { filters: { to: 'bob' }, expected: ['to does not contain "bob"'] },
    { filters: { header: ['x-tag:RED', 'X-Tag:blue: gr', 'cc:bob'] }, expected: [] },
    { filters: { header: ['X-Tag:'] }, expected: [] },
    {
      filters: { header: ['X-Tag:redblue', 'X-Other:', 'X:red'] },
      expected: ['X-Tag:redblue', 'X-Other:', 'X:red'].map((each) => `there is no header "${each}"`),
    },
  ])('$filters: $expected', async ({ filters, expected }) => {
    const message = await messageWith('Hello', header)
    expect(await mismatches(message, filters)).toEqual(expected)
    expect(await matches(message, filters)).toBe(expected.length === 0)
  })
})
