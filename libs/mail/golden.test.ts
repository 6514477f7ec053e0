import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { anyEnvelope } from '#test/harness/envelope.js'
import { readMail, writeMail } from './stored-mail.js'
import { readAttachment } from './mime/mime.js'
import { parseWithSpans } from './parse.js'

/** Mails, each with its expected result. The results are written by hand from the RFCs, not recorded. */
const folder = 'libs/mail/golden'

const names = [...new Set(readdirSync(folder).map((file) => file.replace(/\.(?:eml|json)$/, '')))]

test('the folder has mails', () => {
  expect(names.length).toBeGreaterThanOrEqual(150)
})

test.each(names)('%s', (name) => {
  const raw = readFileSync(`${folder}/${name}.eml`)
  const expected: unknown = JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'))
  if (typeof expected !== 'object' || expected === null)
    throw new Error(`${name}.json does not contain an object.`)

  const { mail: parsed, spans } = parseWithSpans(raw, anyEnvelope)
  expect(parsed).toMatchObject(expected)
  expect(Object.keys(expected).filter((key) => !(key in parsed))).toEqual([])
  expect(parsed).toMatchObject({ size: raw.length, sha256: digest(raw), envelope: anyEnvelope })
  expect(JSON.stringify(parsed).isWellFormed()).toBe(true)
  expect(readMail(writeMail(parsed, spans), () => raw).mail).toEqual(parsed)
  for (const meta of parsed.attachments) {
    const read = readAttachment(raw, meta.index)
    expect(read?.meta).toEqual(meta)
    expect(read?.content).toHaveLength(meta.size)
    expect(digest(read?.content ?? Buffer.alloc(0))).toBe(meta.sha256)
  }
})

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
