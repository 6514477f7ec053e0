import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { sourceOf } from '#test/harness/labelled-mails.js'
import { DEFAULT_MAIL_LIMITS } from '../limits.js'
import type { Warning } from '../message.js'
import { prepareSource, readWellFormed } from './parts.js'
import { readTree } from './read-tree.js'

/*
 * mailparser is the reference: the parts that are read without it must be the same, byte by byte.
 */

const golden = readdirSync('libs/mail/golden').filter((file) => file.endsWith('.eml'))
const labelled = readdirSync('libs/mail/labelled').filter((file) => file.endsWith('.eml'))
const mails: readonly Buffer[] = [
  ...golden.map((file) => readFileSync(`libs/mail/golden/${file}`)),
  ...labelled.map((file) => sourceOf(file.slice(0, -'.eml'.length))),
]
const limits = { ...DEFAULT_MAIL_LIMITS, maxHeaderBytes: 2_000, maxDepth: 4 }

/** Whether `readWellFormed` can read a mail. Fails if `readTree` reads other parts. */
async function isWellFormed(raw: Buffer): Promise<boolean> {
  const source = prepareSource(raw, limits, [])
  const read = readWellFormed(source, limits)
  if (read === null) return false
  const warnings: Warning[] = []
  expect(read).toStrictEqual(await readTree(source, limits, warnings))
  expect(warnings).toEqual([])
  return true
}

test('most of the golden and labelled mails are read without mailparser, with the same parts', async () => {
  let count = 0
  for (const mail of mails) if (await isWellFormed(mail)) count += 1
  expect(count).toBeGreaterThan(0.95 * mails.length)
})

const boundaries = fc.constantFrom('outer', 'inner', 'b', 'b--', 'third')
const text = fc.constantFrom(
  '',
  '',
  'text',
  '-- ',
  '--',
  '--b',
  '--b-- \t',
  '--inner\u00a0',
  '\r--b',
  '--other',
)
const fields = fc.constantFrom(
  'Content-Type: text/html',
  'Content-Type: text/plain; format=flowed',
  'Content-Transfer-Encoding: base64',
  'Content-ID: <i@b>',
  'Subject: s',
  ' folded',
  'Content-Type: image/png',
  'Content-Type: message/rfc822',
  'Content-Disposition: attachment',
  `X: ${'x'.repeat(2_000)}`,
)
const lines = fc.array(text, { maxLength: 3 })
const header = fc.array(fields, { maxLength: 2 })
/** The lines of a part: text, or parts between delimiters. Sometimes one line is missing. */
const { part } = fc.letrec<{ part: string[]; multipart: string[] }>((tie) => ({
  part: fc.oneof(
    { depthSize: 'medium', maxDepth: 5 },
    fc.tuple(header, lines).map(([head, body]) => [...head, '', ...body]),
    tie('multipart'),
  ),
  multipart: fc
    .record({
      boundary: boundaries,
      related: fc.boolean(),
      preamble: lines,
      parts: fc.array(tie('part'), { minLength: 1, maxLength: 3 }),
      epilogue: lines,
      missing: fc.integer({ min: 0, max: 20 }),
    })
    .map(({ boundary, related, preamble, parts, epilogue, missing }) =>
      [
        [`Content-Type: multipart/${related ? 'related' : 'mixed'}; boundary="${boundary}"`, '', ...preamble],
        ...parts.map((each) => [`--${boundary}`, ...each]),
        [`--${boundary}--`, ...epilogue],
      ]
        .filter((_, index) => index === 0 || index !== missing)
        .flat(),
    ),
}))

test('nested parts are read alike, or by mailparser only', async () => {
  let count = 0
  const lineEnds = fc.infiniteStream(fc.constantFrom('\r\n', '\r\n', '\r\n', '\n'))
  await fc.assert(
    fc.asyncProperty(part, lineEnds, async (all, ends) => {
      const raw = all.map((line) => line + String(ends.next().value)).join('')
      if (await isWellFormed(Buffer.from(raw, 'latin1'))) count += 1
    }),
    { numRuns: 2_000 },
  )
  expect(count).toBeGreaterThan(200)
})

test('mails with missing, repeated or moved lines are read alike, or by mailparser only', async () => {
  let count = 0
  const change = fc.record({ from: fc.nat(), to: fc.nat(), isCopy: fc.boolean(), isGone: fc.boolean() })
  const changes = fc.array(change, { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...mails), changes, async (mail, all) => {
      const rows = mail.toString('latin1').split(/(?<=\n)/)
      for (const { from, to, isCopy, isGone } of all) {
        const [row = ''] = rows.slice(from % rows.length)
        if (!isCopy) rows.splice(from % rows.length, 1)
        if (!isGone) rows.splice(to % (rows.length + 1), 0, row)
      }
      if (await isWellFormed(Buffer.from(rows.join(''), 'latin1'))) count += 1
    }),
    { numRuns: 2_000 },
  )
  expect(count).toBeGreaterThan(500)
})
