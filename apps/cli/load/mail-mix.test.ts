import { simpleParser } from 'mailparser'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { MAIL_KINDS, mailMix, type MailKind } from './mail-mix.js'

const FROM = 'load-test@app.example'

const values = (number: number) => ({
  id: `<run.${number}@load.mayfly>`,
  recipient: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
  date: 'Wed, 25 Nov 2026 20:00:00 +0000',
  code: String(493_201 + number),
})

const sourceOf = (kind: MailKind, bytes: number, number = 0) => mailMix(bytes, FROM)(kind, values(number))

const parse = (source: string) => parseMail(Buffer.from(source), anyEnvelope)

const SIZES = [1_024, 5_120, 100_000]
const everyMail = MAIL_KINDS.flatMap((kind) => SIZES.map((bytes) => ({ kind, bytes })))

describe('the mix of mails', () => {
  it.each(everyMail)('has a valid $kind of about $bytes bytes', async ({ kind, bytes }) => {
    const source = sourceOf(kind, bytes)
    expect(Math.abs(source.length - bytes)).toBeLessThanOrEqual(Math.max(bytes / 50, 100))
    expect(source).toMatch(/^(?:[\t\x20-\x7e]{0,78}\r\n)+$/)

    const parsed = parse(source)
    expect(parsed.warnings).toEqual([])
    expect(parsed.text).not.toBeNull()
    expect(parsed.html !== null).toBe(kind === 'html')
    expect(parsed.codes.map(({ value }) => value)).toEqual(kind === 'code' ? ['493201'] : [])
    expect(parsed.links.map(({ href }) => href)).toEqual(
      kind === 'link' ? ['https://app.example/verify?token=t493201'] : [],
    )
    expect(parsed.attachments.map(({ filename }) => filename)).toEqual(
      kind === 'attachment' ? ['report.bin'] : [],
    )

    const read = await simpleParser(source)
    expect(read.messageId).toBe(values(0).id)
    expect(read.from?.text).toBe(`"The App" <${FROM}>`)
    expect(read.date?.toISOString()).toBe('2026-11-25T20:00:00.000Z')
    expect(read.subject).toBe(parsed.subject)
    expect(read.text?.trim()).toBe(parsed.text?.trim())
    expect(read.attachments.map(({ size }) => size)).toEqual(parsed.attachments.map(({ size }) => size))
  })

  it('has mails that differ in their values only', () => {
    const [first, second] = [0, 1].map((number) => sourceOf('code', 5_120, number))
    expect(second).toBe(first?.replaceAll('run.0@', 'run.1@').replaceAll('493201', '493202'))
  })

  it('has a line that begins with a dot', () => {
    expect(sourceOf('text', 5_120)).toContain('\r\n.')
  })
})
