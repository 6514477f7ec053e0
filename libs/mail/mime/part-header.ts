import { isUtf8 } from 'node:buffer'
import { readParameters, type ParameterValue } from './parameters.js'
import { decodeText, isKnownCharset } from './charset.js'
import { decodeWords, escapeRawBytes } from './encoded-words.js'
import type { Header } from '../message.js'

/** Where a part stands: what its container makes of it. */
export interface PartPlace {
  /** Of the multipart right around it; null for the mail itself. */
  containerType: string | null
  /** Whether a multipart/related is somewhere around it. */
  isRelated: boolean
  /** Multiparts around it. */
  depth: number
}

/** The place of a part within a multipart; of the mail itself without one. */
export function placeWithin(container: PartHeader | undefined): PartPlace {
  if (container === undefined) return { containerType: null, isRelated: false, depth: 0 }
  const { type, isRelated, depth } = container
  return { containerType: type, isRelated: isRelated || type === 'multipart/related', depth: depth + 1 }
}

/** What a part's header says of its body (RFC 2045, RFC 2183), read with all that senders do to it. */
export interface PartHeader extends PartPlace {
  /** The mail's own, all of them; of other parts those that begin with Content-. */
  fields: Field[]
  /** As declared, in lower case; the default of RFC 2045, section 5.2, where it isn't, or not validly. */
  type: string
  /** How the body is shown; null for an attachment and for a multipart. */
  shownAs: 'text/plain' | 'text/html' | null
  charset: string | null
  /** Of a multipart that has one. */
  boundary: string | null
  isFlowed: boolean
  deletesSpace: boolean
  /** In lower case, without comments; empty if none is declared. */
  encoding: string
  filename: string | null
  contentId: string | null
  isInline: boolean
}

const mediaType = /^[\w!#$%&'*+.^`{|}~-]+\/[\w!#$%&'*+.^`{|}~-]+$/
/** Text that is made for programs, or that another part says again for a special reader. */
const dataTypes = new Set(
  (
    'calendar vcard x-vcard x-vcalendar directory csv tab-separated-values xml xsl css javascript ecmascript rtf ' +
    'rfc822-headers x-amp-html watch-html x-patch x-diff'
  )
    .split(' ')
    .map((subtype) => `text/${subtype}`),
)

/** Reads a part's header block. Never fails. */
export function readPartHeader(block: Buffer, place: PartPlace): PartHeader {
  const isMail = place.containerType === null
  const fields = readFields(block, isMail ? '' : 'content-')
  // Of several fields the first counts.
  const valueOf = (key: string) => fields.find((field) => field.key === key)?.value ?? ''
  const contentType = parametersOf(valueOf('content-type'))
  const disposition = parametersOf(valueOf('content-disposition'))
  const filename = fileName(disposition, contentType)
  const isAttached = disposition.value !== '' && disposition.value !== 'inline'
  const isDeclared = mediaType.test(contentType.value)
  const type = isDeclared
    ? contentType.value
    : defaultType(place.containerType, isAttached || filename !== null)
  const contentId = fieldText(valueOf('content-id'), null).trim().replace(/^<|>$/g, '').trim()
  return {
    ...place,
    fields,
    type,
    shownAs: isAttached ? null : shownAs(type, place.containerType, filename !== null),
    charset: contentType.parameters.get('charset') ?? null,
    boundary: type.startsWith('multipart/') ? boundaryOf(contentType) : null,
    isFlowed: contentType.parameters.get('format')?.toLowerCase() === 'flowed',
    deletesSpace: contentType.parameters.get('delsp')?.toLowerCase() === 'yes',
    encoding: transferEncoding(valueOf('content-transfer-encoding')),
    filename,
    contentId: contentId === '' ? null : contentId.toWellFormed(),
    isInline:
      disposition.value === 'inline' || (disposition.value === '' && place.isRelated && contentId !== ''),
  }
}

function parametersOf(value: string): ParameterValue {
  return value === '' ? { value: '', parameters: new Map() } : readParameters(fieldText(value, null))
}

/** The name that the disposition gives (RFC 2183, section 2.3), else the older one of the type. */
function fileName(disposition: ParameterValue, contentType: ParameterValue): string | null {
  const name = disposition.parameters.get('filename') || contentType.parameters.get('name') || ''
  return name === '' ? null : name.toWellFormed()
}

/** RFC 2045, section 5.2, and RFC 2046, section 5.1.5; of a file nothing is known. */
function defaultType(containerType: string | null, isFile: boolean): string {
  if (containerType === 'multipart/digest') return 'message/rfc822'
  return isFile ? 'application/octet-stream' : 'text/plain'
}

function shownAs(type: string, containerType: string | null, isNamed: boolean): PartHeader['shownAs'] {
  if (type === 'text/plain' || type === 'text/html') return type
  // RFC 2046, section 4.1.4: unknown text is read as plain text, unless another part says the same.
  const isReadable = type.startsWith('text/') && !dataTypes.has(type) && !isNamed
  return isReadable && containerType !== 'multipart/alternative' ? 'text/plain' : null
}

function boundaryOf(contentType: ParameterValue): string | null {
  // RFC 2046, section 5.1.1: it never ends in white space.
  const boundary = Buffer.from(contentType.parameters.get('boundary')?.trimEnd() ?? '').toString('latin1')
  return boundary === '' ? null : boundary
}

function transferEncoding(value: string): string {
  return value
    .replace(/\([^()]*\)/g, '')
    .replace(/[\s";]+$|^[\s"]+/g, '')
    .toLowerCase()
    .replace(/^quoted\s+printable$/, 'quoted-printable')
}

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
 * a name are left out, mbox's `From ` lines too. Only fields whose names begin with `prefix`, which is in lower case: a
 * part may have a great many.
 */
function readFields(block: Buffer, prefix: string): Field[] {
  const fields: { name: string; key: string; lines: string[] }[] = []
  let open: string[] | null = null
  for (const line of block.toString('latin1').split('\n')) {
    if (line.startsWith(' ') || line.startsWith('\t')) {
      const text = line.trim()
      if (text !== '') open?.push(text)
      continue
    }
    open = null
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).trim()
    if (name === '' || mboxLine.test(line)) continue
    const key = name.toLowerCase()
    if (!key.startsWith(prefix)) continue
    open = [line.slice(colon + 1).trim()]
    fields.push({ name, key, lines: open })
  }
  return fields.map(({ name, key, lines }) => ({ name, key, value: lines.join(' ').trim() }))
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
