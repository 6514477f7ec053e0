import type { AttachmentStream, MessageText } from 'mailparser'
import { describeAttachment } from './attachments.js'
import type { MailLimits } from '../limits.js'
import type { Attachment, Warning } from '../message.js'
import { BodyPieces } from './splitter.js'
import { AttachmentHeaders, TreeParser, type MimeNode } from './tree-parser.js'
import type { Part, ShownParts } from './well-formed.js'

/** Takes a piece of the content of the attachment with this index. */
export type OnContent = (index: number, piece: Buffer) => void

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

/**
 * The parts of any mail, as `prepareSource` leaves it; adds to the warnings. Calls `onContent` with each piece of every
 * listed attachment, in order. Rejects with an Error if the parser is defeated.
 */
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
      if (isListed) attachments.push(describePart(part, index, warnings))
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

function* shownIn(node: MimeNode): Generator<Part> {
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

function describePart(part: AttachmentStream, index: number, warnings: Warning[]): Attachment {
  if (!(part.headers instanceof AttachmentHeaders)) throw new Error('An attachment came without its header.')
  const { size, checksum: sha256 } = part
  return describeAttachment(part.headers.part, { index, size, sha256 }, warnings)
}
