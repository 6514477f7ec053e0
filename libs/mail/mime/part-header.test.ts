import { parseMail } from '../parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { readHeader } from './part-header.js'

const NAME = 'x-load-id'

describe('a header that is read without the mail', () => {
  it.each([
    ['X-Load-Id: one', 'one'],
    ['x-LOAD-id :  one  ', 'one'],
    ['X-Load-Id:\r\n one\r\n\ttwo ', 'one two'],
    ['X-Load-Id: =?utf-8?q?gr=C3=BCn?=', 'grün'],
    ['X-Load-Id: grün', 'grün'],
    ['X-Load-Id: one\r\nX-Load-Id: two', 'one'],
    ['X-Load-Id-2: no\r\nX-Load-Id: one', 'one'],
    ['X-Load-Id:', ''],
    ['X-Other: one', null],
    [`X-Long: ${'a '.repeat(10_000)}\r\nX-Load-Id: one`, 'one'],
    ['Subject: x\r\n\r\nX-Load-Id: body', null],
    ['Subject: x\n\nX-Load-Id: body', null],
  ])('has the value that the API shows: %j', async (header, value) => {
    const raw = Buffer.from(`${header}\r\nSubject: Mail\r\n\r\nText\r\n`)
    expect(readHeader(raw, NAME)).toBe(value)
    const { headers } = await parseMail(raw, anyEnvelope)
    const shown = headers.find(({ name }) => name.trim().toLowerCase() === NAME)
    expect(shown?.value ?? null).toBe(value)
  })
})
