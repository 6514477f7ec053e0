import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { simpleParser } from 'mailparser'
import { anyEnvelope } from '#test/harness/envelope.js'
import { sourceOf } from '#test/harness/labelled-mails.js'
import { DEFAULT_MAIL_LIMITS } from '../limits.js'
import type { Warning } from '../message.js'
import { parseMail } from '../parse.js'
import { readHeader, readParts } from './parts.js'

const emlIn = (folder: string) => readdirSync(folder).filter((file) => file.endsWith('.eml'))
const golden = emlIn('libs/mail/golden').map((file) => readFileSync(`libs/mail/golden/${file}`))
const labelled = emlIn('libs/mail/labelled').map((file) => sourceOf(file.slice(0, -'.eml'.length)))

/** The bodies of all attachments. Fails if there is a warning. */
function attachmentsIn(source: Buffer): string[] {
  const warnings: Warning[] = []
  const { attached } = readParts(source, DEFAULT_MAIL_LIMITS, warnings)
  expect(warnings).toEqual([])
  return attached.map(({ body }) => body.toString('latin1'))
}

interface Tree {
  /** The body of an attachment, or the parts of a multipart. */
  content: string[] | Tree[]
  preamble: string[]
  epilogue: string[]
  lacksEnd: boolean
}

const text = fc.constantFrom(
  '',
  'text',
  '-- ',
  '--',
  '--b',
  '--b-- \t',
  '--other',
  'Subject: s',
  '\r--b',
  '--m00',
)
const lines = fc.array(text, { minLength: 1, maxLength: 4 })
const tree = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.record({
    content: fc.oneof(
      { depthSize: 'medium', maxDepth: 6 },
      lines,
      fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
    ),
    preamble: lines,
    epilogue: lines,
    lacksEnd: fc.boolean(),
  }),
})).tree

const isBody = (content: Tree['content']): content is string[] => typeof content[0] === 'string'

/** The lines of a part. The boundary of each multipart says where it is in the tree. */
function linesOf({ content, preamble, epilogue, lacksEnd }: Tree, position: string): string[] {
  if (isBody(content)) return ['Content-Type: application/octet-stream', '', ...content]
  const delimiter = `--m${position}`
  const parts = content.flatMap((part, index) => [delimiter, ...linesOf(part, `${position}${index}`)])
  const end = lacksEnd ? [] : [`${delimiter}--`, ...epilogue]
  return [`Content-Type: multipart/mixed; boundary=m${position}`, '', ...preamble, ...parts, ...end]
}

function bodiesOf({ content }: Tree): string[][] {
  return isBody(content) ? [content] : content.flatMap(bodiesOf)
}

function mailOf(part: Tree, lineEnd: string): Buffer {
  const root = { content: [part], preamble: [], epilogue: [], lacksEnd: false }
  return Buffer.from(
    linesOf(root, 'root')
      .map((line) => line + lineEnd)
      .join(''),
    'latin1',
  )
}

const lineEnds = fc.constantFrom('\r\n', '\n')

test('the attachments of nested multiparts are found, byte by byte, even if multiparts lack their end', () => {
  fc.assert(
    fc.property(tree, lineEnds, (part, lineEnd) => {
      const bodies = bodiesOf(part).map((body) => body.join(lineEnd))
      expect(attachmentsIn(mailOf(part, lineEnd))).toEqual(bodies)
    }),
    { numRuns: 2_000 },
  )
})

test('mailparser finds the same attachments in mail in which each multipart has its end', async () => {
  const complete = (part: Tree): Tree => ({
    ...part,
    lacksEnd: false,
    content: isBody(part.content) ? ['x', ...part.content, 'x'] : part.content.map(complete),
  })
  await fc.assert(
    fc.asyncProperty(tree.map(complete), lineEnds, async (part, lineEnd) => {
      const mail = mailOf(part, lineEnd)
      const { attachments } = await simpleParser(mail)
      expect(attachmentsIn(mail)).toEqual(attachments.map(({ content }) => content.toString('latin1')))
    }),
    { numRuns: 300 },
  )
})

test('mailparser finds the same texts in the labelled mails', async () => {
  const options = { skipTextToHtml: true, skipHtmlToText: true, skipTextLinks: true, skipImageLinks: true }
  for (const mail of labelled) {
    const { text: plain, html } = await simpleParser(mail, options)
    const read = parseMail(mail, anyEnvelope)
    expect([read.text ?? '', read.html ?? ''].map((each) => each.trim())).toEqual(
      [plain ?? '', html || ''].map((each) => each.trim()),
    )
  }
})

test('the bodies of a mail with missing, repeated or moved lines do not overlap', () => {
  const change = fc.record({ from: fc.nat(), to: fc.nat(), isCopy: fc.boolean(), isGone: fc.boolean() })
  const changes = fc.array(change, { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(fc.constantFrom(...golden, ...labelled), changes, (mail, all) => {
      const rows = mail.toString('latin1').split(/(?<=\n)/)
      for (const { from, to, isCopy, isGone } of all) {
        const [row = ''] = rows.slice(from % rows.length)
        if (!isCopy) rows.splice(from % rows.length, 1)
        if (!isGone) rows.splice(to % (rows.length + 1), 0, row)
      }
      const source = Buffer.from(rows.join(''), 'latin1')
      const { shown, attached } = readParts(source, DEFAULT_MAIL_LIMITS, [])
      const ranges = [...shown, ...attached].map(({ body }) => [body.byteOffset, body.length] as const)
      let end = source.byteOffset
      for (const [start, length] of ranges.sort(([one], [other]) => one - other)) {
        expect(start).toBeGreaterThanOrEqual(end)
        end = start + length
      }
      expect(end).toBeLessThanOrEqual(source.byteOffset + source.length)
    }),
    { numRuns: 2_000 },
  )
})

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
  ])('has the value that the API shows: %j', (header, value) => {
    const raw = Buffer.from(`${header}\r\nSubject: Mail\r\n\r\nText\r\n`)
    expect(readHeader(raw, NAME)).toBe(value)
    const { headers } = parseMail(raw, anyEnvelope)
    const shown = headers.find(({ name }) => name.trim().toLowerCase() === NAME)
    expect(shown?.value ?? null).toBe(value)
  })
})
