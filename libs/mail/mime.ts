/**
 * The MIME tree of a mail, read by mailparser (3.9.30, pinned). Beyond its documented events this relies on
 * a few of its inner members, declared below: its own summary joins text and HTML parts into each other and
 * makes up what the mail lacks, so the parts are taken from its tree instead.
 */
import type { Transform } from 'node:stream'
import { MailParser } from 'mailparser'
import type { AddressObject, AttachmentStream, HeaderValue, Headers, MessageText } from 'mailparser'
import { headerText, readHeader } from './headers.js'
import type { MailLimits } from './limits.js'
import type { Attachment, Header, Mailbox, Warning } from './message.js'
import { QuotedPrintableDecoder } from './quoted-printable.js'
import { prepareSource } from './source.js'

interface HeaderLine {
  key: string
  /** One character a byte. */
  line: string
}

/** A part's header as the splitter hands it over. */
interface PartHeader {
  encoding: string | false
  getDecoder(): Transform
}

interface MimeNode {
  contentType: string | false
  isAttachment?: boolean
  /** Absent on what is not text, and on text until it has been read to its end. */
  textContent?: string
  children: MimeNode[]
  decoder?: Transform
}

declare module 'mailparser' {
  interface MailParser {
    tree: MimeNode | false
    headers: Headers | false
    headerLines: HeaderLine[] | false
    libmime: { decodeWords(text: string): string }
    createNode(part: PartHeader): MimeNode
    processHeaders(lines: HeaderLine[]): Headers
    processChunk(chunk: unknown, done: (error?: unknown) => void): void
  }
}

/** The headers that the tree itself needs; reading the others as well would cost a tenth of the whole. */
const structuralHeaders = new Set([
  'from',
  'to',
  'cc',
  'reply-to',
  'content-type',
  'content-disposition',
  'content-id',
])

class TreeParser extends MailParser {
  override processHeaders(lines: HeaderLine[]): Headers {
    const wanted = lines.filter(({ key }) => structuralHeaders.has(key)).map(asUtf8)
    return super.processHeaders(wanted)
  }

  override createNode(part: PartHeader): MimeNode {
    // The library's own decoder mangles 8-bit bytes and takes quadratic time on long runs of spaces.
    if (part.encoding === 'quoted-printable') part.getDecoder = () => new QuotedPrintableDecoder()
    const node = super.createNode(part)
    if (node.decoder !== undefined) endOnce(node.decoder)
    return node
  }

  /** Called from timers, where an exception would end the process instead of this mail. */
  override processChunk(chunk: unknown, done: (error?: unknown) => void): void {
    try {
      super.processChunk(chunk, done)
    } catch (error) {
      done(error)
    }
  }
}

/** mailparser ends its decoders again and again, and each time a stream makes an exception that nobody sees. */
function endOnce(decoder: Transform): void {
  const end = decoder.end.bind(decoder)
  decoder.end = () => (decoder.writableEnded ? decoder : end())
}

function asUtf8({ key, line }: HeaderLine): HeaderLine {
  return { key, line: Buffer.from(headerText(line)).toString('latin1') }
}

export interface MimeContent {
  headers: Header[]
  from: Mailbox[]
  to: Mailbox[]
  cc: Mailbox[]
  replyTo: Mailbox[]
  /** What is shown, in order, of type text/plain. */
  texts: string[]
  /** What is shown, in order, of type text/html. */
  htmls: string[]
  attachments: Attachment[]
  warnings: Warning[]
}

/**
 * Resolves once the whole source is read. Calls `onContent` with each piece of every listed attachment, in
 * order, before its entry is made. Rejects with an Error if the parser is defeated.
 */
export function readMime(
  raw: Buffer,
  limits: MailLimits,
  onContent?: (index: number, piece: Buffer) => void,
): Promise<MimeContent> {
  const warnings: Warning[] = []
  const source = prepareSource(raw, limits, warnings)
  return new Promise((resolve, reject) => {
    const options = {
      skipHtmlToText: true,
      skipTextToHtml: true,
      skipTextLinks: true,
      skipImageLinks: true,
      keepDeliveryStatus: true,
      checksumAlgo: 'sha256',
      // An attached mail stays an attachment, also where it is marked inline.
      ignoreEmbedded: true,
      maxHeadSize: Infinity,
      maxChildNodes: limits.maxParts + 1,
    }
    const parser = new TreeParser(options)
    const attachments: Attachment[] = []
    let omitted = 0

    parser.on('data', (part: AttachmentStream | MessageText) => {
      if (part.type !== 'attachment') return
      const index = attachments.length
      const isListed = index < limits.maxAttachments && depthOf(part) <= limits.maxDepth
      if (!isListed) omitted++
      part.content.on('data', (piece: Buffer) => {
        if (isListed) onContent?.(index, piece)
      })
      part.content.on('end', () => {
        if (isListed) attachments.push(describeAttachment(part, index))
        part.release()
      })
    })
    parser.on('error', (error: Error) => reject(error))
    parser.on('end', () => {
      if (omitted > 0) {
        warnings.push({ code: 'too-many-attachments', detail: `${omitted} more attachments were left out.` })
      }
      resolve(contentOf(parser, attachments, limits, warnings))
    })
    parser.on('close', () => reject(new Error('The mail parser stopped before the end of the source.')))
    parser.end(source)
  })
}

function contentOf(
  parser: TreeParser,
  attachments: Attachment[],
  limits: MailLimits,
  warnings: Warning[],
): MimeContent {
  const decodeWords = (text: string): string => parser.libmime.decodeWords(text)
  const headers: Header[] = []
  for (const { line } of parser.headerLines || []) {
    const header = readHeader(line, decodeWords)
    if (header !== null) headers.push(header)
  }
  const known = parser.headers || new Map<string, HeaderValue>()
  const texts: string[] = []
  const htmls: string[] = []
  if (parser.tree && !collectText(parser.tree, limits.maxDepth, texts, htmls)) {
    warnings.push({
      code: 'too-many-parts',
      detail: `Parts nested deeper than ${limits.maxDepth} were left out.`,
    })
  }
  return {
    headers,
    from: mailboxes(known.get('from')),
    to: mailboxes(known.get('to')),
    cc: mailboxes(known.get('cc')),
    replyTo: mailboxes(known.get('reply-to')),
    texts,
    htmls,
    attachments,
    warnings,
  }
}

/** False if something lay too deep. */
function collectText(node: MimeNode, depthLeft: number, texts: string[], htmls: string[]): boolean {
  if (depthLeft < 0) return false
  if (node.textContent !== undefined && node.textContent !== '' && node.isAttachment !== true) {
    if (node.contentType === 'text/plain') texts.push(node.textContent)
    else if (node.contentType === 'text/html') htmls.push(node.textContent)
  }
  let isWhole = true
  for (const child of node.children) isWhole = collectText(child, depthLeft - 1, texts, htmls) && isWhole
  return isWhole
}

/** mailparser numbers parts as IMAP does: `1.2` is the second part of the first. */
function depthOf(part: AttachmentStream): number {
  return part.partId === undefined ? 0 : (part.partId ?? '').split('.').length
}

function describeAttachment(part: AttachmentStream, index: number): Attachment {
  const declared = part.headers.get('content-type')
  // mailparser replaces application/octet-stream by a guess from the file name; what the mail says stands.
  const contentType =
    declared !== undefined && typeof declared === 'object' && 'params' in declared
      ? declared.value.toLowerCase().trim()
      : part.contentType
  const disposition = part.contentDisposition
  return {
    index,
    filename: part.filename ?? null,
    contentType: contentType === '' ? 'application/octet-stream' : contentType,
    size: part.size,
    contentId: part.cid === undefined || part.cid === '' ? null : part.cid,
    isInline: disposition === 'inline' || (disposition === undefined && part.related === true),
    sha256: part.checksum,
  }
}

function mailboxes(value: HeaderValue | undefined): Mailbox[] {
  const found: Mailbox[] = []
  const lists = Array.isArray(value) ? value : [value]
  for (const list of lists) {
    if (isAddressObject(list)) flatten(list.value, found)
  }
  return found
}

function isAddressObject(value: unknown): value is AddressObject {
  return typeof value === 'object' && value !== null && 'value' in value && Array.isArray(value.value)
}

function flatten(entries: AddressObject['value'], found: Mailbox[]): void {
  for (const { address, name, group } of entries) {
    if (group !== undefined) flatten(group, found)
    else if (address !== undefined && address !== '') found.push({ name: name === '' ? null : name, address })
  }
}
