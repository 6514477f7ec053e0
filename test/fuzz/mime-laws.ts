import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readAttachment } from '#libs/mail/mime/mime.js'
import { DEFAULT_MAIL_LIMITS, type MailLimits } from '#libs/mail/limits.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { readMail, writeMail } from '#libs/mail/stored-mail.js'
import { parseMail, parseWithSpans } from '#libs/mail/parse.js'
import { anyEnvelope } from '#test/harness/envelope.js'

/** Maximum CPU time of parsing: a constant for compilation and garbage collection, and a part per byte. */
const FREE_MS = 1_000
const MS_PER_BYTE = 0.004

/** The number of attachments that are read too. */
const READ_ATTACHMENTS = 4

/**
 * The properties of parsing for arbitrary bytes: it takes time linear in their length, and gives the same consistent
 * result each time. Throws an AssertionError if one does not hold.
 */
export function checkMail(raw: Buffer, limits: MailLimits = DEFAULT_MAIL_LIMITS): void {
  const before = Buffer.from(raw)
  const started = process.threadCpuUsage()
  const { mail, spans } = parseWithSpans(raw, anyEnvelope, limits)
  const { user, system } = process.threadCpuUsage(started)
  const ms = (user + system) / 1_000
  assert.ok(ms <= FREE_MS + raw.length * MS_PER_BYTE, `${raw.length} bytes took ${ms.toFixed(0)} ms`)
  assert.ok(raw.equals(before), 'the source was changed')
  const again = parseMail(raw, anyEnvelope, limits)
  assert.equal(JSON.stringify(again), JSON.stringify(mail), 'read in two ways')

  const stored = readMail(writeMail(mail, spans), () => raw)
  assert.deepEqual(stored.mail, mail, 'stored in another way')
  assert.ok(stored.bytes >= Buffer.byteLength(JSON.stringify(mail)), 'more bytes than were counted')

  checkValues(mail, limits)
  assert.equal(mail.size, raw.length)
  assert.equal(mail.sha256, digestOf(raw))
  checkAttachments(raw, mail, limits)
}

function checkValues(mail: ParsedMail, limits: MailLimits): void {
  for (const text of stringsIn(mail)) assert.ok(text.isWellFormed(), 'half a surrogate pair')
  assert.ok(jsonBytes(mail.text) <= limits.maxTextBytes, 'text past its limit')
  assert.ok(jsonBytes(mail.html) <= limits.maxHtmlBytes, 'html past its limit')
  assert.ok(mail.headers.length <= limits.maxHeaders, 'more headers than the limit')
  assert.ok(mail.attachments.length <= limits.maxAttachments, 'more attachments than the limit')
  assert.ok(mail.links.length <= limits.maxLinks, 'more links than the limit')
  assert.ok(mail.codes.length <= limits.maxCodes, 'more codes than the limit')
  assert.equal(mail.html === null, mail.htmlText === null)
  assert.ok(mail.date === null || new Date(mail.date).toISOString() === mail.date, 'a date that is none')
  for (const { name, value } of mail.headers) {
    assert.match(name, /^\S(?:.*\S)?$/s, 'a header without a name')
    assert.doesNotMatch(value, /[\r\n]/, 'a line break in a header')
  }
  const hrefs = mail.links.map(({ href }) => href)
  assert.equal(new Set(hrefs).size, hrefs.length, 'a link twice')
  for (const href of hrefs) assert.match(new URL(href).protocol, /^https?:$/)
  const texts = [mail.subject, mail.text, mail.htmlText]
  for (const { value, text, confidence } of mail.codes) {
    assert.notEqual(value, '')
    assert.ok(confidence > 0 && confidence <= 1, `confidence ${confidence}`)
    assert.ok(
      texts.some((each) => each?.includes(text) === true),
      `the code ${text} is not in the text`,
    )
  }
}

function checkAttachments(raw: Buffer, mail: ParsedMail, limits: MailLimits): void {
  const { attachments } = mail
  assert.deepEqual(
    attachments.map(({ index }) => index),
    attachments.map((_, index) => index),
  )
  for (const attachment of [...attachments.slice(0, READ_ATTACHMENTS - 1), ...attachments.slice(-1)]) {
    const found = readAttachment(raw, attachment.index, limits)
    assert.deepEqual(found?.meta, attachment)
    assert.equal(found.content.length, attachment.size, 'another size than listed')
    assert.equal(digestOf(found.content), attachment.sha256, 'another digest than listed')
  }
  assert.equal(readAttachment(raw, attachments.length, limits), null, 'an attachment that is not listed')
}

function jsonBytes(text: string | null): number {
  return Buffer.byteLength(JSON.stringify(text ?? '')) - 2
}

function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) yield* stringsIn(each)
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
