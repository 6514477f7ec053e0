/**
 * The parts of any mail, split by mailparser (3.9.30, pinned) and the splitter within it (mailsplit 5.4.18). Beyond
 * documented events this relies on a few inner members of both, declared here and in `splitter.ts`: mailparser's own
 * summary joins text and HTML parts into each other and makes up what the mail lacks. So parts are taken as the splitter
 * finds them, their headers and bodies are read here, and delimiters are found as RFC 2046 has them.
 */
import { MailParser } from 'mailparser'
import type { Warning, MailLimits } from '../message.js'
import { placeWithin, readPartHeader, type PartHeader } from './part-header.js'
import { correctDelimiters, type Chunk, type SplitPart, type Splitter } from './splitter.js'
import type { Part, Parts } from './source.js'

declare module 'mailparser' {
  /** Those of its splitter, which its types lack. */
  interface MailParserOptions {
    ignoreEmbedded?: boolean
    maxHeadSize?: number
    maxChildNodes?: number
  }
  interface MailParser {
    splitter: Splitter
    processChunk(chunk: Chunk | SplitPart, done: () => void): void
  }
}

/** Reads the parts of a mail as `prepareSource` leaves it; adds to the warnings. Rejects with an Error if the parser fails. */
export async function readTree(source: Buffer, limits: MailLimits, warnings: Warning[]): Promise<Parts> {
  const parser = new TreeParser(limits)
  await readAll(parser, source)
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
  const parts = parser.parts.flatMap(readablePart)
  return {
    header: parser.parts[0]?.node.headers || undefined,
    shown: parts.filter(({ header }) => header.shownAs !== null),
    attached: parts.filter(({ header }) => header.shownAs === null),
  }
}

/** Resolves once the parser has come to the end of the source. */
function readAll(parser: TreeParser, source: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    parser.on('error', (error: Error) => reject(error))
    parser.on('end', () => resolve())
    parser.on('close', () => reject(new Error('The mail parser stopped before the end of the source.')))
    parser.resume()
    parser.end(source)
  })
}

/** A part with its body as it was sent, or a multipart with what stands before its first part. */
interface SplitContent {
  node: SplitPart
  pieces: Buffer[]
}

function readablePart({ node: { headers: header }, pieces }: SplitContent): Part[] {
  if (header === false || (isContainer(header) && pieces.length === 0)) return []
  const [only = Buffer.alloc(0)] = pieces
  const body = pieces.length > 1 ? Buffer.concat(pieces) : only
  // A multipart whose delimiter never comes: better all of it than nothing.
  return [{ header: isContainer(header) ? shownWhole(header) : header, body }]
}

/** Whether it is a multipart whose parts are read. */
function isContainer({ type, shownAs }: PartHeader): boolean {
  return type.startsWith('multipart/') && shownAs === null
}

function shownWhole(header: PartHeader): PartHeader {
  return { ...header, shownAs: 'text/plain', encoding: '' }
}

class TreeParser extends MailParser {
  /** In the order of the mail. */
  readonly parts: SplitContent[] = []
  /** Whether multiparts lay deeper than they are read. */
  isTooDeep = false
  /** Whether a part's header was longer than it is read. */
  isHeaderCut = false

  constructor(private readonly limits: MailLimits) {
    // An attached mail stays an attachment, also if it is marked inline.
    super({ ignoreEmbedded: true, maxHeadSize: Infinity, maxChildNodes: limits.maxParts + 1 })
    const { splitter } = this
    const makeNode = splitter.newNode.bind(splitter)
    splitter.newNode = (parent) => {
      makeNode(parent)
      this.adopt(splitter.node)
    }
    correctDelimiters(splitter)
    this.adopt(splitter.node)
  }

  /** Takes the place of mailparser's own reading. */
  override processChunk(chunk: Chunk | SplitPart, done: () => void): void {
    const last = this.parts.at(-1)
    if (chunk.type === 'node') {
      if (last !== undefined && last.node === chunk.parentNode) last.pieces = []
      this.parts.push({ node: chunk, pieces: [] })
    } else if (last !== undefined && last.node === chunk.node && chunk.value !== undefined) {
      const isInContainer = last.node.headers !== false && isContainer(last.node.headers)
      if (isInContainer === (chunk.type === 'data')) last.pieces.push(chunk.value)
    }
    setImmediate(done)
  }

  private adopt(part: SplitPart): void {
    let isCut = false
    const addLine = part.addHeaderChunk.bind(part)
    part.addHeaderChunk = (line) => {
      // The mail's own header was cut before; each line of a part's would cost a buffer.
      isCut ||= part.parentNode !== false && part._headerlen + line.length > this.limits.maxHeaderBytes
      if (isCut) this.isHeaderCut = true
      else addLine(line)
    }
    part.parseHeaders = () => {
      if (part.headers === false) part.headers = this.readHeader(part)
    }
  }

  private readHeader(part: SplitPart): PartHeader {
    const container = part.parentNode && part.parentNode.headers
    const block = Buffer.concat(part._headersLines, part._headerlen)
    const header = readPartHeader(block, placeWithin(container || undefined))
    if (!header.type.startsWith('multipart/')) return header
    if (header.depth >= this.limits.maxDepth) {
      this.isTooDeep = true
      return { ...header, boundary: null }
    }
    // Without a boundary there is no telling parts apart: all of it is shown.
    if (header.boundary === null) return shownWhole(header)
    part.multipart = header.type.slice('multipart/'.length)
    part._boundary = Buffer.from(header.boundary, 'latin1')
    return header
  }
}
