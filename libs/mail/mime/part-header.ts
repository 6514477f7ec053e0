import { fieldText, readFields, type Field } from './headers.js'
import { readParameters, type ParameterValue } from './parameters.js'

/** Where a part stands: what its container makes of it. */
export interface PartPlace {
  /** Of the multipart right around it; null for the mail itself. */
  containerType: string | null
  /** Whether a multipart/related is somewhere around it. */
  isRelated: boolean
  /** Multiparts around it. */
  depth: number
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
