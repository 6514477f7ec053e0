import fc from 'fast-check'
import { FixedMemoryLimit } from './connection-limits.js'
import { identityOf, MailData } from './mail-data.js'

function begin(
  maxBytes = 1_000,
  declaredBytes: number | null = null,
  budget = new FixedMemoryLimit(1 << 20),
) {
  const data = MailData.begin({ maxBytes, declaredBytes }, budget)
  if (data === null) throw new Error('no memory')
  return data
}

/** Feeds a mail in pieces. Returns the bytes after its end, or null. */
function feed(data: MailData, wire: string, pieceBytes: number): string | null {
  const bytes = Buffer.from(wire, 'latin1')
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const rest = data.write(bytes.subarray(at, at + pieceBytes))
    if (rest !== null) return rest.toString('latin1') + bytes.toString('latin1', at + pieceBytes)
  }
  return null
}

const MAILS = [
  { wire: '.\r\n', raw: '' },
  { wire: '\r\n.\r\n', raw: '\r\n' },
  { wire: 'a\r\n.\r\n', raw: 'a\r\n' },
  { wire: '..\r\n.\r\n', raw: '.\r\n' },
  { wire: '..a\r\n...\r\n.b\r\n.\r\n', raw: '.a\r\n..\r\nb\r\n' },
  { wire: 'a.\r\n a .\r\n.\r\n', raw: 'a.\r\n a .\r\n' },
  { wire: '\x00\xff\x80\r\n.\r\n', raw: '\x00\xff\x80\r\n' },
]

const SMUGGLING = [
  '\n.\n',
  '\r.\r',
  '\r\n.\n',
  '\n.\r\n',
  '\r\n.\r',
  '\r.\r\n',
  '\r\n.\r\r\n',
  '\r\r\n',
  '\n',
  '\r',
]

describe('mail data', () => {
  it.each(MAILS)('reads $wire as $raw in chunks of any size', ({ wire, raw }) => {
    for (let pieceBytes = 1; pieceBytes <= wire.length + 5; pieceBytes += 1) {
      const data = begin()
      expect(feed(data, `${wire}QUIT\r\n`, pieceBytes)).toBe('QUIT\r\n')
      expect(data.content()).toEqual({ state: 'complete', raw: Buffer.from(raw, 'latin1') })
      data.release()
    }
  })

  it.each(SMUGGLING)('does not end at %j, and refuses the mail for it', (sequence) => {
    for (let pieceBytes = 1; pieceBytes <= 12; pieceBytes += 1) {
      const data = begin()
      expect(feed(data, `a${sequence}MAIL`, pieceBytes)).toBeNull()
      expect(feed(data, 'b\r\n.\r\nQUIT', pieceBytes)).toBe('QUIT')
      expect(data.content()).toEqual({ state: 'bare-line-break' })
    }
  })

  it('removes stuffed dots, for any content in chunks of any size', () => {
    const line = fc.string({ unit: fc.constantFrom('.', 'a', '\xff', ' '), maxLength: 6 })
    fc.assert(
      fc.property(fc.array(line), fc.integer({ min: 1, max: 20 }), (lines, pieceBytes) => {
        const raw = lines.map((text) => `${text}\r\n`).join('')
        const wire = `${raw.replace(/(^|\n)\./g, '$1..')}.\r\n`
        const data = begin()
        expect(feed(data, wire, pieceBytes)).toBe('')
        const content = data.content()
        expect(content.state === 'complete' && content.raw.toString('latin1')).toBe(raw)
      }),
    )
  })

  it('keeps a mail of exactly the limit, and reads a larger one without keeping it', () => {
    const budget = new FixedMemoryLimit(100_000)
    const fits = begin(20_000, null, budget)
    feed(fits, `${'x'.repeat(19_998)}\r\n.\r\n`, 1_000)
    expect(fits.content().state).toBe('complete')
    fits.release()
    const data = begin(20_000, null, budget)
    expect(feed(data, `${'x'.repeat(19_999)}\r\n.\r\nQUIT`, 1_000)).toBe('QUIT')
    expect(data.content()).toEqual({ state: 'too-large' })
    expect(budget.tryTake(100_000)).toBe(true)
  })

  it('counts the bytes that it allocates, and releases them all', () => {
    const budget = new FixedMemoryLimit(40_000)
    expect(MailData.begin({ maxBytes: 50_000, declaredBytes: 45_000 }, budget)).toBeNull()
    const one = begin(50_000, 30_000, budget)
    expect(budget.canTake(10_001)).toBe(false)
    const other = begin(50_000, null, budget)
    expect(feed(other, `${'x'.repeat(9_000)}\r\n.\r\n`, 4_096)).toBe('')
    expect(other.content()).toEqual({ state: 'memory-full' })
    one.release()
    one.release()
    expect(budget.canTake(40_000)).toBe(true)
    expect(budget.canTake(40_001)).toBe(false)
  })
})

test.each([
  { what: 'in the header', raw: 'Subject: x\r\nMessage-ID: <a@x>\r\nTo: y\r\n\r\nbody', identity: '<a@x>' },
  { what: 'in letters of any case', raw: 'MESSAGE-Id:<a@x>\r\n\r\n', identity: '<a@x>' },
  { what: 'folded', raw: 'Message-ID:\r\n <a@x>\r\n\r\n', identity: '<a@x>' },
  { what: 'without a body', raw: 'Message-ID: <a@x>', identity: '<a@x>' },
  {
    what: 'in a header that ends without CR',
    raw: 'Message-ID: <a@x>\n\nMessage-ID: <b@x>\r\n\r\n',
    identity: '<a@x>',
  },
  { what: 'only in the body', raw: 'Subject: x\r\n\r\nMessage-ID: <b@x>\r\n', identity: null },
  {
    what: 'only in the body after line ends without CR',
    raw: 'Subject: x\n\nMessage-ID: <b@x>\r\n\r\n',
    identity: null,
  },
  {
    what: 'after 64 KiB',
    raw: `Subject: ${'x'.repeat(65_536)}\r\nMessage-ID: <a@x>\r\n\r\n`,
    identity: null,
  },
  { what: 'empty', raw: 'Message-ID: \r\n\r\n', identity: null },
])('the Message-ID of a mail that has it $what', ({ raw, identity }) => {
  expect(identityOf(Buffer.from(raw))).toBe(identity)
})
