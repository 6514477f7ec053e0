import { isUtf8 } from 'node:buffer'
import type { Header } from '../message.js'
import { decodeText } from './charset.js'
import { decodeWords, escapeRawBytes } from './encoded-words.js'
import { readParameters, type ParameterValue } from './parameters.js'

/** The multiparts around a part, as far as they affect how it is read. */
export interface PartContext {
  /** The type of the innermost multipart around it; null for the mail itself. */
  containerType: string | null
  /** Whether it is within a multipart/related, at any level. */
  isRelated: boolean
  /** What relative URLs in it refer to: the Content-Location of a multipart around it (RFC 2557, section 5). */
  baseUrl: string
}

/** The base of URLs in a mail without a Content-Location (RFC 2557, section 5). */
const MAIL_URL = 'thismessage:/'

/** The context of a part within a multipart, or of the mail itself if there is none. */
export function contextWithin(container: PartHeader | undefined): PartContext {
  if (container === undefined) return { containerType: null, isRelated: false, baseUrl: MAIL_URL }
  const { type, isRelated, contentLocation, baseUrl } = container
  return {
    containerType: type,
    isRelated: isRelated || type === 'multipart/related',
    baseUrl: contentLocation ?? baseUrl,
  }
}

/** The header of a part (RFC 2045, RFC 2183), read with tolerance for senders' errors. */
export interface PartHeader extends PartContext {
  /** All fields of the mail's own header; of other parts only the fields that begin with Content-. */
  fields: Field[]
  /** As declared, in lower case; the default of RFC 2045, section 5.2, if it is missing or invalid. */
  type: string
  /** How the body is shown; null for an attachment and for a multipart. */
  shownAs: 'text/plain' | 'text/html' | null
  charset: string | null
  /** Null if the part is not a multipart, or has no boundary. */
  boundary: string | null
  isFlowed: boolean
  deletesSpace: boolean
  /** The transfer encoding in lower case, without comments; empty if none is declared. */
  encoding: string
  filename: string | null
  contentId: string | null
  /** An absolute URL. */
  contentLocation: string | null
  isInline: boolean
}

const MEDIA_TYPE = /^[\w!#$%&'*+.^`{|}~-]+\/[\w!#$%&'*+.^`{|}~-]+$/
/** Text for programs, or a version for special readers of what another part says. */
const DATA_TYPES = new Set(
  (
    'calendar vcard x-vcard x-vcalendar directory csv tab-separated-values xml xsl css javascript ecmascript rtf ' +
    'rfc822-headers x-amp-html watch-html x-patch x-diff'
  )
    .split(' ')
    .map((subtype) => `text/${subtype}`),
)

/** Reads a part's header block. Never fails. */
export function readPartHeader(block: Buffer, context: PartContext): PartHeader {
  const isMail = context.containerType === null
  const fields = readFields(block, isMail ? '' : 'content-')
  // If a field is repeated, the first one is used.
  const valueOf = (key: string) => fields.find((field) => field.key === key)?.value ?? ''
  const contentType = parametersOf(valueOf('content-type'), null)
  const disposition = parametersOf(valueOf('content-disposition'), null)
  const filename = nameOf(disposition, contentType)
  const isAttached = disposition.value !== '' && disposition.value !== 'inline'
  const isDeclared = MEDIA_TYPE.test(contentType.value)
  const type = isDeclared
    ? contentType.value
    : defaultType(context.containerType, isAttached || filename !== null)
  const contentId = fieldText(valueOf('content-id'), null).trim().replace(/^<|>$/g, '').trim()
  return {
    ...context,
    fields,
    type,
    shownAs: isAttached ? null : shownAs(type, context.containerType, filename !== null),
    charset: contentType.parameters.get('charset') ?? null,
    boundary: type.startsWith('multipart/') ? boundaryOf(contentType) : null,
    isFlowed: contentType.parameters.get('format')?.toLowerCase() === 'flowed',
    deletesSpace: contentType.parameters.get('delsp')?.toLowerCase() === 'yes',
    encoding: transferEncoding(valueOf('content-transfer-encoding')),
    filename,
    contentId: contentId === '' ? null : contentId.toWellFormed(),
    contentLocation: locationOf(valueOf('content-location'), context.baseUrl),
    isInline:
      disposition.value === 'inline' || (disposition.value === '' && context.isRelated && contentId !== ''),
  }
}

/** A longer Content-Location is ignored. */
const MAX_LOCATION_CHARACTERS = 8_192

/** RFC 2557, section 4.4: the URL may be folded and encoded. Some senders put it into brackets, as a Content-ID. */
function locationOf(value: string, baseUrl: string): string | null {
  if (value === '') return null
  const url = decodeWords(fieldText(value, null))
    .replace(/\s+/g, '')
    .replace(/^[<"]|[>"]$/g, '')
  const location = url === '' ? null : (URL.parse(url, baseUrl)?.href ?? null)
  return location !== null && location.length <= MAX_LOCATION_CHARACTERS ? location : null
}

function parametersOf(value: string, charset: string | null): ParameterValue {
  return value === '' ? { value: '', parameters: new Map() } : readParameters(fieldText(value, charset))
}

/** The file name of a part whose raw bytes are in a charset. */
export function fileName({ fields }: PartHeader, charset: string | null): string | null {
  const parametersIn = (key: string) =>
    parametersOf(fields.find((field) => field.key === key)?.value ?? '', charset)
  return nameOf(parametersIn('content-disposition'), parametersIn('content-type'))
}

/** The file name of Content-Disposition (RFC 2183, section 2.3), or else the name of Content-Type, which is older. */
function nameOf(disposition: ParameterValue, contentType: ParameterValue): string | null {
  const name = disposition.parameters.get('filename') || contentType.parameters.get('name') || ''
  return name === '' ? null : name.toWellFormed()
}

/** RFC 2045, section 5.2, and RFC 2046, section 5.1.5. A file is not assumed to be text. */
function defaultType(containerType: string | null, isFile: boolean): string {
  if (containerType === 'multipart/digest') return 'message/rfc822'
  return isFile ? 'application/octet-stream' : 'text/plain'
}

function shownAs(type: string, containerType: string | null, isNamed: boolean): PartHeader['shownAs'] {
  if (type === 'text/plain' || type === 'text/html') return type
  // RFC 2046, section 4.1.4: an unknown kind of text is read as plain text, unless another part is an alternative to
  // it.
  const isReadable = type.startsWith('text/') && !DATA_TYPES.has(type) && !isNamed
  return isReadable && containerType !== 'multipart/alternative' ? 'text/plain' : null
}

function boundaryOf(contentType: ParameterValue): string | null {
  // RFC 2046, section 5.1.1: a boundary does not end in white space.
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

/** A header field, unfolded but not decoded. */
export interface Field {
  name: string
  /** The name in lower case. */
  key: string
  /** One character per byte. */
  value: string
}

const BEYOND_ASCII = /[^\x00-\x7f]/
const MBOX_LINE = /^>?From +[^\s:]/

/**
 * The fields of a header block (RFC 5322, section 2.2), including obsolete forms, in order. Lines without a name and
 * mbox's `From ` lines are left out. Only fields with names that begin with `prefix` (in lower case) are returned,
 * because a part may have very many.
 */
export function readFields(block: Buffer, prefix: string): Field[] {
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
    if (name === '' || MBOX_LINE.test(line)) continue
    const key = name.toLowerCase()
    if (!key.startsWith(prefix)) continue
    open = [line.slice(colon + 1).trim()]
    fields.push({ name, key, lines: open })
  }
  return fields.map(({ name, key, lines }) => ({ name, key, value: lines.join(' ').trim() }))
}

/** Whether a header has bytes that are not UTF-8, so that they need a charset. */
export function needsCharset({ fields }: PartHeader): boolean {
  return fields.some(({ value }) => BEYOND_ASCII.test(value) && !isUtf8(Buffer.from(value, 'latin1')))
}

/**
 * Decodes a field's bytes as UTF-8 (RFC 6532) if they are valid, else in a charset, which is windows-1252 if it is
 * null. Raw bytes inside encoded words become escapes of these words.
 */
export function fieldText(value: string, charset: string | null): string {
  if (!BEYOND_ASCII.test(value)) return value
  const bytes = Buffer.from(escapeRawBytes(value), 'latin1')
  return isUtf8(bytes) ? bytes.toString() : decodeText(bytes, charset ?? 'windows-1252').text
}

/** A field as the API shows it: decoded, on one line. */
export function showField({ name, value }: Field, charset: string | null): Header {
  // An encoded word may contain a line break, and a field a lone CR; the value that is shown must not.
  const text = decodeWords(fieldText(value, charset)).replace(/[\r\n]+/g, ' ')
  return { name, value: text.toWellFormed() }
}

/** The first value of a header. `name` is in lower case. */
export function firstValue(headers: Header[], name: string): string | null {
  return headers.find((header) => header.name.toLowerCase() === name)?.value ?? null
}
