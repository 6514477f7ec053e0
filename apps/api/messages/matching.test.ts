import { minute } from '#libs/domain/inbox/inbox.test-support.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { comparable } from './comparable.js'
import { Matcher } from './matching.js'
import type { MatchFilters } from './message-filters.js'

/** More characters than are searched at once. */
const LONG = 300_000

type Matchable = Pick<OpenedMessage, 'mail' | 'receivedAt'>

/** Pairs of texts that look the same to a reader, except for upper and lower case. */
const ALIKE: [found: string, wanted: string][] = [
  ['Cafe\u0301', 'Caf\u00e9'],
  ['Caf\u00e9', 'CAFE\u0301'],
  ['\u1112\u1161\u11ab', '\ud55c'],
  ['Your\u00a0code', 'your code'],
  ['Your\u202fcode', 'your\u00a0 code'],
  ['Your \t\u3000\u2009code', 'your\tcode'],
  ['Your code\r\nis here', 'code is'],
  ['Your code', 'your\r\n\r\ncode'],
  ['Your\x85code', 'your code'],
  ['con\u00adfirm', 'confirm'],
  ['confirm', 'con\u200bfirm'],
  ['a \u200b b', 'A B'],
  ['STRASSE', 'straße'],
  ['Straße', 'STRASSE'],
  ['GRÖẞE', 'grösse'],
  ['o\ufb03ce', 'OFFICE'],
  ['ΟΔΟΣ', 'οδος'],
  ['οδοσ', 'ΟΔΟΣ'],
  ['\u212aelvin', 'kelvin'],
  ['\u0390', '\u03aa\u0301'],
  ['\u0130stanbul', 'i\u0307STANBUL'],
  ['J\u030c', '\u01f0'],
  ['ПРИВЕТ', 'привет'],
]

function messageWith(text: string, header = ''): Matchable {
  const mail = parseMail(Buffer.from(`Subject: One\r\n${header}\r\n`), anyEnvelope)
  return { mail: { ...mail, text, html: null, htmlText: null }, receivedAt: minute(5) }
}

describe('the filter by text', () => {
  it.each([0, 65_531, 65_536, 65_542, 131_070, LONG])(
    'finds words in upper or lower case in a long text, at index %i',
    async (at) => {
      const text = `${'x'.repeat(at)}Your ΟΔΟΣ İs here${'x'.repeat(LONG - at)}`
      const message = messageWith(text)
      for (const wanted of ['your ΟΔΟΣ', 'YOUR', 'İS HERE']) {
        expect([wanted, await new Matcher({ text: wanted }).matches(message)]).toEqual([wanted, true])
      }
      expect(await new Matcher({ text: 'here your' }).matches(message)).toBe(false)
    },
  )

  it('lets other work run during a long search', async () => {
    const message = messageWith('ä'.repeat(10 * LONG))
    let turns = 0
    const counting = setInterval(() => (turns += 1), 0)
    await new Matcher({ text: 'nowhere' }).matches(message)
    clearInterval(counting)
    expect(turns).toBeGreaterThan(1)
  })

  it('is reported with the other filters that do not match', async () => {
    const message = messageWith('Hello')
    expect(
      await new Matcher({ subject: 'two', text: 'nowhere', has_code: true }).mismatches(message),
    ).toEqual(['subject does not contain "two"', 'there is no code', 'text does not contain "nowhere"'])
  })
})

describe('texts of all filters', () => {
  it.each(ALIKE)('finds in %j what looks like %j', async (found, wanted) => {
    const { mail, receivedAt } = messageWith(`- ${found} -`)
    const whole = `- ${found} -`
    const from = [{ name: whole, address: 'a@example.com' }]
    const mails: [MatchFilters, Partial<typeof mail>][] = [
      [{ text: wanted }, {}],
      [{ text: wanted }, { text: null, htmlText: whole }],
      [{ subject: wanted }, { subject: whole }],
      [{ sender: wanted }, { from }],
      [{ to: wanted }, { to: from }],
      [{ recipient: wanted }, { recipient: whole }],
      [{ detail: wanted }, { recipientDetail: whole }],
      [{ header: [`X-Any:${wanted}`] }, { headers: [{ name: 'x-any', value: whole }] }],
    ]
    for (const [filters, properties] of mails) {
      const message = { mail: { ...mail, ...properties }, receivedAt }
      expect(await new Matcher(filters).mismatches(message)).toEqual([])
    }
  })

  it.each([
    ['cafe', 'Caf\u00e9'],
    ['Yourcode', 'your code'],
    ['493 201', '493201'],
    ['a  b', 'ab'],
    ['one', 'ONE TWO'],
  ])('does not find in %j what looks different: %j', async (found, wanted) => {
    expect(await new Matcher({ text: wanted }).matches(messageWith(found))).toBe(false)
  })

  it.each(ALIKE)('finds in %j what looks like %j where a long text is divided', async (found, wanted) => {
    for (let before = 65_536 - found.length - 70; before <= 65_536; before += 1) {
      const message = messageWith(`${'x'.repeat(before)} ${found}`)
      expect([before, await new Matcher({ text: wanted }).matches(message)]).toEqual([before, true])
    }
  })

  it('fold the upper and lower case of all letters', () => {
    const differing: string[] = []
    for (let point = 0; point <= 0x10ffff; point += 1) {
      const letter = String.fromCodePoint(point)
      if (!/\p{L}/u.test(letter)) continue
      const forms = [letter.toUpperCase(), letter.toLowerCase(), letter.normalize('NFD'), comparable(letter)]
      if (forms.some((form) => comparable(form) !== comparable(letter))) differing.push(letter)
    }
    expect(differing).toEqual([])
  })

  it('take linear time, also for text and needles made to take long', async () => {
    const started = performance.now()
    for (const [part, wanted] of [
      ['\u0301\u0323\u0334', '\u0323\u0301a'],
      ['\u200b ', 'a b'],
      [' \r\n', 'x y'],
      ['a', `${'a'.repeat(499)}b${'a'.repeat(499)}`],
    ] as const) {
      const message = messageWith(part.repeat(1_000_000 / part.length))
      expect(await new Matcher({ text: wanted }).matches(message)).toBe(false)
    }
    expect(performance.now() - started).toBeLessThan(15_000)
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
    const message = messageWith('Hello', header)
    const matcher = new Matcher(filters)
    expect(await matcher.mismatches(message)).toEqual(expected)
    expect(await matcher.matches(message)).toBe(expected.length === 0)
  })
})
