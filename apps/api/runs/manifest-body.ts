import { isUtf8 } from 'node:buffer'
import { messageOf } from '#libs/runtime/errors.js'
import { parseTime, TIME_FORM } from '../http/rules.js'
import { invalid, Problem } from '../http/problems.js'
import { MAX_LINES, type Manifest, type ManifestLine } from './manifest.js'

/*
 * Reads the body of a verification: a manifest as lines of JSON.
 */

export const MAX_LINE_BYTES = 16 * 1024
export const MAX_RECIPIENT_CHARACTERS = 320
/** As in a line of a mail (RFC 5322, section 2.1.1). */
export const MAX_ID_CHARACTERS = 998

const LINE_FEED = 0x0a
const BYTE_ORDER_MARK = /^\uFEFF/
const NOTHING = Buffer.alloc(0)

/**
 * Adds each line of a body to a manifest, without empty ones. Throws invalid-request and malformed-json with the number
 * of the line, body-too-large if there are too many, and the errors of `add`. `pause` lets other requests run.
 */
export async function readManifest(
  body: AsyncIterable<Buffer>,
  manifest: Manifest,
  pause: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  let lines = 0
  const read = (bytes: Buffer) => {
    const number = manifest.size + 1
    lines += 1
    // Empty lines count here, since reading them takes time too. The last one may be empty.
    if (lines > MAX_LINES + 1) throw tooManyLines()
    const text = textOf(bytes, number)
    if (text === '') return
    if (number > MAX_LINES) throw tooManyLines()
    manifest.add(lineOf(text, number))
  }
  /** The beginning of a line whose end has not arrived yet. */
  let rest = NOTHING
  for await (const chunk of body) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const piece = chunk.subarray(start, end)
      read(rest.length === 0 ? piece : Buffer.concat([rest, piece]))
      rest = NOTHING
      start = end + 1
    }
    if (start < chunk.length) rest = Buffer.concat([rest, chunk.subarray(start)])
    if (rest.length > MAX_LINE_BYTES) throw tooLong(manifest.size + 1)
    await pause()
  }
  read(rest)
}

function tooManyLines(): Problem {
  return new Problem('body-too-large', { detail: `A manifest may have at most ${MAX_LINES} lines.` })
}

function textOf(bytes: Buffer, number: number): string {
  if (bytes.length > MAX_LINE_BYTES) throw tooLong(number)
  if (!isUtf8(bytes)) throw malformed(number, 'it is not valid UTF-8')
  const text = bytes.toString()
  return (number === 1 ? text.replace(BYTE_ORDER_MARK, '') : text).trim()
}

/** Properties other than those of a line are ignored: a manifest may have more for other programs. */
function lineOf(text: string, number: number): ManifestLine {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw malformed(number, messageOf(error))
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw faulty(number, 'it must be a JSON object', '')
  }
  const { recipient, id, sent_at: sentAt, sha256 } = parsed as Readonly<Record<string, unknown>>
  if (!isText(recipient, MAX_RECIPIENT_CHARACTERS)) {
    const what = `recipient must be a string of 1 to ${MAX_RECIPIENT_CHARACTERS} characters`
    throw faulty(number, what, '/recipient')
  }
  if (!isText(id, MAX_ID_CHARACTERS)) {
    throw faulty(number, `id must be a string of 1 to ${MAX_ID_CHARACTERS} characters`, '/id')
  }
  const sentAtTime = typeof sentAt === 'string' ? parseTime(sentAt) : null
  if (isGiven(sentAt) && sentAtTime === null) throw faulty(number, `sent_at must be ${TIME_FORM}`, '/sent_at')
  const isDigest = typeof sha256 === 'string' && /^[0-9a-f]{64}$/i.test(sha256)
  if (isGiven(sha256) && !isDigest) throw faulty(number, 'sha256 must be 64 hex digits', '/sha256')
  return {
    recipient,
    id: unfolded(id),
    sentAtMs: sentAtTime?.getTime() ?? null,
    digest: isDigest ? Buffer.from(sha256, 'hex') : null,
  }
}

function isText(value: unknown, maxCharacters: number): value is string {
  return (
    typeof value === 'string' && value.trim() !== '' && value.length <= maxCharacters && value.isWellFormed()
  )
}

/** Null counts as not given. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** A header's value on one line, without white space around it (RFC 5322, section 2.2.3). */
function unfolded(text: string): string {
  return text.includes('\n') ? text.replaceAll(/\s*\n\s*/g, ' ').trim() : text.trim()
}

function malformed(number: number, why: string): Problem {
  return new Problem('malformed-json', { detail: `Line ${number}: ${why}.` })
}

/** The body counts as an array of its lines, and `property` is in one of them. */
function faulty(number: number, what: string, property: string): Problem {
  return invalid({ detail: `line ${number}: ${what}`, pointer: `/${number - 1}${property}` })
}

function tooLong(number: number): Problem {
  const detail = `Line ${number} has more than ${MAX_LINE_BYTES} bytes.`
  return new Problem('body-too-large', { detail })
}
