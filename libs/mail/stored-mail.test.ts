import { anyEnvelope } from '#test/harness/envelope.js'
import { EXAMPLE_MAIL } from './message.js'
import { parseWithSpans } from './parse.js'
import { MAX_SPANNED_BYTES, readMail, SEAL_BROKEN, writeMail, type StoredMail } from './stored-mail.js'

const neverRead = () => {
  throw new Error('it has its texts')
}

function source(type: string, body: string | Buffer, encoding = '8bit'): Buffer {
  const header = `Subject: one\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`
  return Buffer.concat([Buffer.from(header), Buffer.from(body)])
}

const part = (type: string, text: string) => `--b\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`
const plain = (text: string) => source('text/plain; charset=utf-8', text)

describe('a stored mail', () => {
  it('is read as it was stored', () => {
    expect(readMail(writeMail(EXAMPLE_MAIL, {}), neverRead).mail).toEqual(EXAMPLE_MAIL)
  })

  it.each(Object.keys(EXAMPLE_MAIL))('is not read without %s', (name) => {
    const text = JSON.stringify({ ...EXAMPLE_MAIL, [name]: undefined })
    expect(() => readMail(text, neverRead)).toThrow(`a stored mail lacks the property ${name}`)
  })

  it.each([
    ['ASCII', plain('Hello.\r\nBye.\r\n'), ['text']],
    ['UTF-8', plain('Grüße, 👋\n'), ['text']],
    [
      'UTF-8 in quoted-printable',
      source('text/plain; charset=utf-8', 'Gr=C3=BC=C3=9Fe=\r\n!', 'quoted-printable'),
      ['text'],
    ],
    [
      'HTML in base64',
      source('text/html; charset=utf-8', Buffer.from('<p>ü</p>').toString('base64'), 'base64'),
      ['html'],
    ],
    [
      'text and HTML after a byte order mark',
      Buffer.concat([
        Buffer.from([0xef, 0xbb, 0xbf]),
        source(
          'multipart/alternative; boundary=b',
          `${part('text/plain', 'one')}${part('text/html', '<b>one</b>')}--b--\r\n`,
        ),
      ]),
      ['text', 'html'],
    ],
    ['an unknown encoding', source('text/plain', 'Hello.', `x-${'y'.repeat(1_000)}`), ['text']],
    ['control characters', plain('\u0001'.repeat(1_000)), ['text']],
    ['the largest small source', plain('x'.repeat(MAX_SPANNED_BYTES - plain('').length)), ['text']],
  ])('has no text of its source: %s', (_what, raw, names) => {
    const { mail, spans } = parseWithSpans(raw, anyEnvelope)
    expect(Object.keys(spans)).toEqual(names)
    const json = writeMail(mail, spans)
    const stored = JSON.parse(json) as StoredMail
    expect(['text', 'html'].filter((name) => !(name in stored))).toEqual(names)
    const read = readMail(json, () => raw)
    expect(read.mail).toEqual(mail)
    const bytes = Buffer.byteLength(JSON.stringify(mail))
    expect(read.bytes - bytes).toBeGreaterThanOrEqual(0)
    expect(read.bytes - bytes).toBeLessThan(150)
  })

  it.each([
    ['in Latin-1', source('text/plain; charset=iso-8859-1', Buffer.from('Gr\xfc\xdfe', 'latin1'))],
    ['with a byte order mark', plain('\ufeffHello.')],
    ['that is flowed', source('text/plain; format=flowed', 'one \r\ntwo\r\n')],
    [
      'in two parts',
      source('multipart/mixed; boundary=b', `${part('text/plain', 'one')}${part('text/plain', 'two')}--b--`),
    ],
    ['in base64 of several pieces', source('text/plain; charset=utf-8', 'QQ==\r\n'.repeat(9), 'base64')],
    ['of a larger source', plain('x'.repeat(MAX_SPANNED_BYTES - plain('').length + 1))],
  ])('has its text: one %s', (_what, raw) => {
    const { mail, spans } = parseWithSpans(raw, anyEnvelope)
    expect(spans).toEqual({})
    expect(readMail(writeMail(mail, spans), neverRead).mail).toEqual(mail)
  })

  it('has no text and a warning if its source is damaged', () => {
    const { mail, spans } = parseWithSpans(plain('Your code is 493201'), anyEnvelope)
    const read = readMail(writeMail(mail, spans), () => null).mail
    expect(read).toEqual({ ...mail, text: null, warnings: [SEAL_BROKEN] })
    expect(read.codes).toHaveLength(1)
  })
})
