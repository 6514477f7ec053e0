import { isUtf8 } from 'node:buffer'
import type { Header } from './message.js'

const windows1252 = new TextDecoder('windows-1252')

const beyondAscii = /[^\x00-\x7f]/

/**
 * A header line's bytes, given one character a byte, as text: UTF-8 (RFC 6532) where it is valid, else
 * windows-1252, which is what raw 8-bit headers most often are.
 */
export function headerText(line: string): string {
  if (!beyondAscii.test(line)) return line
  const bytes = Buffer.from(line, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : windows1252.decode(bytes)
}

/** Unfolds and decodes a header line; null for a line that has no name. */
export function readHeader(line: string, decodeWords: (text: string) => string): Header | null {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0)).trim()
  if (name === '') return null
  let value = headerText(line.slice(colon + 1))
  if (value.includes('\n')) value = value.replace(/\r?\n[ \t]*/g, ' ')
  value = value.trim()
  const text = value.includes('=?') ? decodeWords(value) : value
  // An encoded word may hold a line break, and a lone CR ends no line; a header's value may hold neither.
  return { name, value: text.replace(/[\r\n]+/g, ' ').toWellFormed() }
}

/** The first value of a header, by its name in lower case. */
export function firstValue(headers: Header[], name: string): string | null {
  return headers.find((header) => header.name.toLowerCase() === name)?.value ?? null
}
