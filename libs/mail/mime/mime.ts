import type { AttachmentStream, MessageText } from 'mailparser'
import { readMailboxes } from './addresses.js'
import { bodyText, encodingWarning } from './body-text.js'
import { fieldText, showField, type Field } from './part-header.js'
import { type MailLimits, defaultMailLimits } from '../limits.js'
import type { Attachment, Header, Mailbox, Warning } from '../message.js'
import { prepareSource } from './source.js'
import { BodyPieces } from './splitter.js'
import { AttachmentHeaders, TreeParser, type MimeNode } from './tree-parser.js'
import { readWellFormed, type ShownPart, type ShownParts } from './well-formed.js'

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

const parserOptions = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
  keepDeliveryStatus: true,
  checksumAlgo: 'sha256',
  // An attached mail stays an attachment, also where it is marked inline.
  ignoreEmbedded: true,
  maxHeadSize: Infinity,
}

type OnContent = (index: number, piece: Buffer) => void

/** Resolves once the whole source is read. Rejects with an Error if the parser is defeated. */
export async function readMime(raw: Buffer, limits: MailLimits): Promise<MimeContent> {
  const warnings: Warning[] = []
  const source = prepareSource(raw, limits, warnings)
  const parts = readWellFormed(source, limits) ?? (await readTree(source, limits, warnings))
  return contentOf(parts, limits, warnings)
}

/**
 * The listed attachments of a source. Calls `onContent` with each piece of every one, in order, before its entry is made.
 * What else the mail says is not decoded. Rejects as `readMime` does.
 */
export async function readAttachments(
  raw: Buffer,
  limits: MailLimits,
  onContent: OnContent,
): Promise<Attachment[]> {
  const warnings: Warning[] = []
  const source = prepareSource(raw, limits, warnings)
  const { attachments } = await readTree(source, limits, warnings, onContent)
  return attachments
}

/** The parts of any mail, as `prepareSource` leaves it; adds to the warnings. */
export async function readTree(
  source: Buffer,
  limits: MailLimits,
  warnings: Warning[],
  onContent?: OnContent,
): Promise<ShownParts & { attachments: Attachment[] }> {
  const options = { ...parserOptions, maxChildNodes: limits.maxParts + 1 }
  const parser = new TreeParser(options, limits)
  const gathered = gatherAttachments(parser, limits.maxAttachments, warnings, onContent)
  await readAll(parser, source)
  const { attachments, omitted } = gathered
  if (omitted > 0) {
    warnings.push({ code: 'too-many-attachments', detail: `${omitted} more attachments were left out.` })
  }
  if (parser.isHeaderCut) {
    warnings.push({
      code: 'too-many-headers',
      detail: `Only the first ${limits.maxHeaderBytes} bytes of a part's header were read.`,
    })
  }
  if (parser.isTooDeep) {
    warnings.push({
      code: 'too-many-parts',
      detail: `Parts nested deeper than ${limits.maxDepth} were left out.`,
    })
  }
  const { tree } = parser
  if (!tree) return { header: undefined, shown: [], attachments }
  return { header: tree.node.header, shown: [...shownIn(tree)], attachments }
}

/** Lists attachments while the parser comes by them. */
function gatherAttachments(
  parser: TreeParser,
  most: number,
  warnings: Warning[],
  onContent?: OnContent,
): { attachments: Attachment[]; omitted: number } {
  const attachments: Attachment[] = []
  const gathered = { attachments, omitted: 0 }
  parser.on('data', (part: AttachmentStream | MessageText) => {
    if (part.type !== 'attachment') return
    const index = attachments.length
    const isListed = index < most
    if (!isListed) gathered.omitted++
    part.content.on('data', (piece: Buffer) => {
      if (isListed) onContent?.(index, piece)
    })
    part.content.on('end', () => {
      if (isListed) attachments.push(describeAttachment(part, index, warnings))
      part.release()
    })
  })
  return gathered
}

/** Resolves once the parser has come to the end of the source. */
function readAll(parser: TreeParser, source: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    parser.on('error', (error: Error) => reject(error))
    parser.on('end', () => resolve())
    parser.on('close', () => reject(new Error('The mail parser stopped before the end of the source.')))
    parser.end(source)
  })
}

function contentOf(
  { header, shown, attachments = [] }: ShownParts & { attachments?: Attachment[] },
  { maxMailboxes }: MailLimits,
  warnings: Warning[],
): MimeContent {
  const texts: string[] = []
  const htmls: string[] = []
  for (const part of shown) {
    const text = shownText(part, warnings)
    if (text !== '') (part.header.shownAs === 'text/html' ? htmls : texts).push(text)
  }
  const fields = header?.fields ?? []
  const charset = header?.charset ?? null
  const mailboxesOf = (found: Field[]) => {
    const read: Mailbox[] = []
    for (const { value } of found) {
      read.push(...readMailboxes(fieldText(value, charset), maxMailboxes + 1 - read.length))
      if (read.length <= maxMailboxes) continue
      const detail = `Only the first ${maxMailboxes} addresses of an address field are listed.`
      warnings.push({ code: 'too-many-addresses', detail })
      break
    }
    return read.slice(0, maxMailboxes)
  }
  const all = (key: string) => fields.filter((field) => field.key === key)
  // A mail may have one of each (RFC 5322, section 3.6). Of several From or Reply-To the first counts.
  return {
    headers: fields.map((field) => showField(field, charset)),
    from: mailboxesOf(all('from').slice(0, 1)),
    to: mailboxesOf(all('to')),
    cc: mailboxesOf(all('cc')),
    replyTo: mailboxesOf(all('reply-to').slice(0, 1)),
    texts,
    htmls,
    attachments,
    warnings: distinct(warnings),
  }
}

function* shownIn(node: MimeNode): Generator<ShownPart> {
  const { header } = node.node
  if (header !== undefined && node.decoder instanceof BodyPieces) {
    yield { header, body: joined(node.decoder.pieces) }
  } else if (header !== undefined && node.children.length === 0 && node.preamble !== undefined) {
    // A multipart whose delimiter never comes: better all of it than nothing.
    yield { header: { ...header, encoding: '' }, body: joined(node.preamble) }
  }
  for (const child of node.children) yield* shownIn(child)
}

function joined(pieces: Buffer[]): Buffer {
  const [only = Buffer.alloc(0)] = pieces
  return pieces.length > 1 ? Buffer.concat(pieces) : only
}

function shownText({ header, body }: ShownPart, warnings: Warning[]): string {
  const warning = encodingWarning(header)
  if (warning !== null) warnings.push(warning)
  return bodyText(header, body, warnings)
}

function describeAttachment(part: AttachmentStream, index: number, warnings: Warning[]): Attachment {
  if (!(part.headers instanceof AttachmentHeaders)) throw new Error('An attachment came without its header.')
  const header = part.headers.part
  const warning = encodingWarning(header)
  if (warning !== null) warnings.push(warning)
  return {
    index,
    filename: header.filename,
    contentType: header.type,
    size: part.size,
    contentId: header.contentId,
    isInline: header.isInline,
    sha256: part.checksum,
  }
}

function distinct(warnings: Warning[]): Warning[] {
  const seen = new Map(warnings.map((warning) => [warning.code + warning.detail, warning]))
  return [...seen.values()]
}

/**
 * One attachment's decoded bytes, by the index that `parseMail` gave it under the same limits; null if there is
 * none. Rejects as `parseMail` does.
 */
export async function readAttachment(
  raw: Buffer,
  index: number,
  limits: MailLimits = defaultMailLimits,
): Promise<{ meta: Attachment; content: Buffer } | null> {
  const pieces: Buffer[] = []
  const attachments = await readAttachments(raw, limits, (at, piece) => {
    if (at === index) pieces.push(piece)
  })
  const meta = attachments[index]
  return meta === undefined ? null : { meta, content: Buffer.concat(pieces) }
}
