/**
 * The MIME tree of a mail, read by mailparser (3.9.30, pinned) and the splitter within it (mailsplit 5.4.18).
 * Beyond documented events this relies on a few inner members of both, declared below: its own summary joins text and HTML
 * parts into each other and makes up what the mail lacks, so the parts are taken from its tree, their headers and
 * bodies are read here, and delimiters are found as RFC 2046 has them.
 */
import { PassThrough, type Transform } from 'node:stream'
import { MailParser, type Headers } from 'mailparser'
import { Base64Decoder, QuotedPrintableDecoder } from './transfer-encodings.js'
import type { MailLimits } from '../limits.js'
import { placeWithin, readPartHeader, type PartHeader } from './part-header.js'
import { BodyPieces, correctDelimiters, type Chunk, type SplitPart, type Splitter } from './splitter.js'

export interface MimeNode {
  node: SplitPart
  headers: Headers
  children: MimeNode[]
  decoder?: Transform | BodyPieces
  /** Of a multipart, what stands before its first part. */
  preamble?: Buffer[]
}

declare module 'mailparser' {
  interface MailParser {
    tree: MimeNode | false
    curnode: MimeNode | false
    splitter: Splitter
    createNode(part: SplitPart): MimeNode
    processHeaders(): Headers
    processChunk(chunk: Chunk, done: (error?: unknown) => void): void
  }
}

/** What mailparser hands on with each attachment, in place of its own reading of the header. */
export class AttachmentHeaders extends Map<string, never> {
  constructor(readonly part: PartHeader) {
    super()
  }
}

export class TreeParser extends MailParser {
  /** Whether multiparts lay deeper than they are read. */
  isTooDeep = false
  /** Whether a part's header was longer than it is read. */
  isHeaderCut = false

  constructor(
    options: ConstructorParameters<typeof MailParser>[0],
    private readonly limits: Pick<MailLimits, 'maxDepth' | 'maxHeaderBytes'>,
  ) {
    super(options)
    const { splitter } = this
    const makeNode = splitter.newNode.bind(splitter)
    splitter.newNode = (parent) => {
      makeNode(parent)
      this.adopt(splitter.node)
    }
    correctDelimiters(splitter)
    this.adopt(splitter.node)
  }

  override processHeaders(): Headers {
    return new Map()
  }

  override createNode(part: SplitPart): MimeNode {
    const node = super.createNode(part)
    if (part.header !== undefined) node.headers = new AttachmentHeaders(part.header)
    if (node.decoder !== undefined && !(node.decoder instanceof BodyPieces)) endOnce(node.decoder)
    return node
  }

  /** Called from timers, where an exception would end the process instead of this mail. */
  override processChunk(chunk: Chunk, done: (error?: unknown) => void): void {
    try {
      if (chunk.type === 'data' && chunk.value !== undefined) this.keepPreamble(chunk.node, chunk.value)
      super.processChunk(chunk, done)
    } catch (error) {
      done(error)
    }
  }

  private keepPreamble(part: SplitPart | undefined, value: Buffer): void {
    const { curnode } = this
    if (curnode && curnode.node === part && curnode.children.length === 0)
      (curnode.preamble ??= []).push(value)
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
      if (part.headers === false) this.readHeader(part)
    }
  }

  private readHeader(part: SplitPart): void {
    const container = part.parentNode ? part.parentNode.header : undefined
    const block = Buffer.concat(part._headersLines, part._headerlen)
    const header = readPartHeader(block, placeWithin(container))
    part.header = header
    part.headers = { lines: [], getList: () => [] }
    part.disposition = header.shownAs === null ? 'attachment' : 'inline'
    part.contentType = header.shownAs ?? header.type
    part.getDecoder = () => (header.shownAs === null ? decoderFor(header.encoding) : new BodyPieces())
    if (!header.type.startsWith('multipart/')) return
    if (header.depth >= this.limits.maxDepth) {
      header.boundary = null
      this.isTooDeep = true
    } else if (header.boundary === null) {
      // There is no telling parts apart: all of it is shown.
      header.shownAs = 'text/plain'
      header.encoding = ''
      part.contentType = 'text/plain'
      part.disposition = 'inline'
    } else {
      part.multipart = header.type.slice('multipart/'.length)
      part._boundary = Buffer.from(header.boundary, 'latin1')
    }
  }
}

function decoderFor(encoding: string): Transform {
  if (encoding === 'base64') return new Base64Decoder()
  return encoding === 'quoted-printable' ? new QuotedPrintableDecoder() : new PassThrough()
}

/** mailparser ends its decoders again and again, and each time a stream makes an exception that nobody sees. */
function endOnce(decoder: Transform): void {
  const end = decoder.end.bind(decoder)
  decoder.end = () => (decoder.writableEnded ? decoder : end())
}
