import { isUtf8 } from 'node:buffer'
import { decodeText, isKnownCharset } from './charset.js'
import { decodeWords, escapeRawBytes } from './encoded-words.js'
import type { Header } from '../message.js'

/** A header field as it stands, unfolded. */
export interface Field {
  name: string
  /** The name in lower case. */
  key: string
  /** One character a byte. */
  value: string
}

const beyondAscii = /[^\x00-\x7f]/
const mboxLine = /^>?From +[^\s:]/

/**
 * The fields of a header block (RFC 5322, section 2.2), obsolete forms among them, in their order. Lines without
 * a name are left out, mbox's `From ` lines too. With `prefix`, which is in lower case, only fields whose names
 * begin so: a part may have a great many.
 */
export function readFields(block: Buffer, prefix = ''): Field[] {
  const fields: Field[] = []
  let open: { field: Field; lines: string[] } | null = null
  for (const line of block.toString('latin1').split('\n')) {
    const isFolded = line.startsWith(' ') || line.startsWith('\t')
    if (isFolded) {
      const text = line.trim()
      if (text !== '') open?.lines.push(text)
      continue
    }
    if (open !== null) open.field.value = open.lines.join(' ').trim()
    open = null
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).trim()
    if (name === '' || mboxLine.test(line)) continue
    const key = name.toLowerCase()
    if (!key.startsWith(prefix)) continue
    const field = { name, key, value: '' }
    fields.push(field)
    open = { field, lines: [line.slice(colon + 1).trim()] }
  }
  if (open !== null) open.field.value = open.lines.join(' ').trim()
  return fields
}

/**
 * A field's bytes as text: UTF-8 (RFC 6532) if it is valid, else in the charset that the body declares, as
 * senders of raw 8-bit headers have it, else windows-1252. Raw bytes inside encoded words become escapes of those words.
 */
export function fieldText(value: string, bodyCharset: string | null): string {
  if (!beyondAscii.test(value)) return value
  const bytes = Buffer.from(escapeRawBytes(value), 'latin1')
  if (isUtf8(bytes)) return bytes.toString()
  const isOfUse = bodyCharset !== null && !/^utf|^iso-2022/i.test(bodyCharset) && isKnownCharset(bodyCharset)
  return decodeText(bytes, isOfUse ? bodyCharset : 'windows-1252').text
}

/** A field as it is shown: decoded, on one line. */
export function showField({ name, value }: Field, bodyCharset: string | null): Header {
  // An encoded word may hold a line break, as may a field a lone CR; a header's value may not.
  const text = decodeWords(fieldText(value, bodyCharset)).replace(/[\r\n]+/g, ' ')
  return { name, value: text.toWellFormed() }
}

/** The first value of a header, by its name in lower case. */
export function firstValue(headers: Header[], name: string): string | null {
  return headers.find((header) => header.name.toLowerCase() === name)?.value ?? null
}
