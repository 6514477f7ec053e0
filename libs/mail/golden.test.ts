import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { readAttachment } from './attachment.js'
import type { Envelope, ParsedMail } from './message.js'
import { parseMail } from './parse.js'

/** Each mail beside what must be shown of it, which is written by hand from the RFCs and never recorded. */
const folder = 'libs/mail/golden'

const envelope: Envelope = {
  mailFrom: 'bounce@app.example',
  rcptTo: 'k3v+tag@mayfly.test',
  helo: 'mx.app.example',
  remoteAddress: '192.0.2.1',
  tls: null,
}

const names = [...new Set(readdirSync(folder).map((file) => file.replace(/\.(?:eml|json)$/, '')))]

test('there are mails to read', () => {
  expect(names.length).toBeGreaterThanOrEqual(150)
})

test.each(names)('%s', async (name) => {
  const raw = readFileSync(`${folder}/${name}.eml`)
  const expected: unknown = JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'))
  if (typeof expected !== 'object' || expected === null) throw new Error(`${name}.json holds no object.`)

  const parsed: ParsedMail = await parseMail(raw, envelope)
  expect(parsed).toMatchObject(expected)
  expect(Object.keys(expected).filter((key) => !(key in parsed))).toEqual([])
  expect(parsed).toMatchObject({ size: raw.length, sha256: digest(raw), envelope })
  expect(JSON.stringify(parsed).isWellFormed()).toBe(true)
  for (const meta of parsed.attachments) {
    const read = await readAttachment(raw, meta.index)
    expect(read?.meta).toEqual(meta)
    expect(read?.content).toHaveLength(meta.size)
    expect(digest(read?.content ?? Buffer.alloc(0))).toBe(meta.sha256)
  }
})

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
