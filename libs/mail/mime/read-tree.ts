import { MailParser } from 'mailparser'
import type { MailLimits } from '../limits.js'
import type { Warning } from '../message.js'
import { contextWithin, readPartHeader, type PartHeader } from './part-header.js'
import type { Part, Parts } from './parts.js'
import { correctDelimiters, type Chunk, type SplitPart, type Splitter } from './splitter.js'

/*
 * Splits any mail into its parts with mailparser (3.9.30, pinned) and its splitter (mailsplit 5.4.18). Besides
 * documented events, this relies on a few private members of both, declared here and in `splitter.ts`. mailparser's
 * own result can't be used: it merges text and HTML parts, and adds what the mail lacks. Instead, parts are taken as
 * the splitter finds them, headers and bodies are read here, and delimiters follow the rules of RFC 2046.
 */

declare module 'mailparser' {
  /** Options of the splitter, which are missing in the types of mailparser. */
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

/**
 * Reads the parts of a mail. `source` is the result of `prepareSource`. Adds to the warnings. Rejects with an Error if
 * the parser fails.
 */
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

/** Resolves when the parser has reached the end of the source. */
function readAll(parser: TreeParser, source: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    parser.on('error', (error: Error) => reject(error))
    parser.on('end', () => resolve())
    parser.on('close', () => reject(new Error('The mail parser stopped before the end of the source.')))
    parser.resume()
    parser.end(source)
  })
}

/** A part with its body as it was sent, or a multipart with the text before its first part. */
interface SplitContent {
  node: SplitPart
  pieces: Buffer[]
}

function readablePart({ node: { headers: header }, pieces }: SplitContent): Part[] {
  if (header === false || (isContainer(header) && pieces.length === 0)) return []
  const [only = Buffer.alloc(0)] = pieces
  const body = pieces.length > 1 ? Buffer.concat(pieces) : only
  // A multipart without any delimiter is shown whole.
  return [{ header: isContainer(header) ? shownWhole(header) : header, body }]
}

/** Whether the parts of this part are read: it is a multipart that is not shown whole. */
function isContainer({ type, shownAs }: PartHeader): boolean {
  return type.startsWith('multipart/') && shownAs === null
}

function shownWhole(header: PartHeader): PartHeader {
  return { ...header, shownAs: 'text/plain', encoding: '' }
}

class TreeParser extends MailParser {
  /** In the order of the mail. */
  readonly parts: SplitContent[] = []
  /** Whether multiparts were nested deeper than the limit. */
  isTooDeep = false
  /** Whether the header of a part was longer than the limit. */
  isHeaderCut = false

  constructor(private readonly limits: MailLimits) {
    // An attached mail is always an attachment, even if it is marked inline.
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

  /** Replaces mailparser's own reading of the parts. */
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
      // `prepareSource` has cut the mail's own header. In the header of a part, each line would take a buffer.
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
    const header = readPartHeader(block, contextWithin(container || undefined))
    if (!header.type.startsWith('multipart/')) return header
    if (header.depth >= this.limits.maxDepth) {
      this.isTooDeep = true
      return { ...header, boundary: null }
    }
    // Without a boundary, parts can't be found: the multipart is shown whole.
    if (header.boundary === null) return shownWhole(header)
    part.multipart = header.type.slice('multipart/'.length)
    part._boundary = Buffer.from(header.boundary, 'latin1')
    return header
  }
}
