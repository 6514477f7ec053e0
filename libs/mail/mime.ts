import type { AttachmentStream, HeaderValue, MessageText } from 'mailparser'
import { readHeader } from './headers.js'
import type { MailLimits } from './limits.js'
import { mailboxes } from './mailboxes.js'
import type { Attachment, Header, Mailbox, Warning } from './message.js'
import { prepareSource } from './source.js'
import { TreeParser, type MimeNode } from './tree-parser.js'

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
 * order, before its entry is made. Rejects with an Error if the parser is defeated. Charsets like UTF-16 can say half a
 * surrogate pair, in whose place stands U+FFFD: strict readers of JSON refuse all of what holds one (RFC 7493, section 2.1).
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
    const parser = new TreeParser(options, limits.maxHeaderBytes)
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
  if (parser.arePartHeadersCut) {
    warnings.push({
      code: 'too-many-headers',
      detail: `Only the first ${limits.maxHeaderBytes} bytes of the headers of all parts were read.`,
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
    filename: part.filename?.toWellFormed() ?? null,
    contentType: contentType === '' ? 'application/octet-stream' : contentType.toWellFormed(),
    size: part.size,
    contentId: part.cid === undefined || part.cid === '' ? null : part.cid.toWellFormed(),
    isInline: disposition === 'inline' || (disposition === undefined && part.related === true),
    sha256: part.checksum,
  }
}
