/**
 * The MIME tree of a mail, read by mailparser (3.9.30, pinned). Beyond its documented events this relies on
 * a few of its inner members, declared below: its own summary joins text and HTML parts into each other and
 * makes up what the mail lacks, so the parts are taken from its tree instead.
 */
import type { Transform } from 'node:stream'
import { MailParser, type Headers, type MailParserOptions } from 'mailparser'
import { headerText } from './headers.js'
import { QuotedPrintableDecoder } from './quoted-printable.js'

const CR = 13

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

/** A part as the splitter begins it, before its header is read. */
interface SplitNode {
  addHeaderChunk(line?: Buffer): void
}

export interface MimeNode {
  contentType: string | false
  isAttachment?: boolean
  /** Absent on what is not text, and on text until it has been read to its end. */
  textContent?: string
  children: MimeNode[]
  decoder?: Transform
}

declare module 'mailparser' {
  interface MailParser {
    splitter: { node: SplitNode; newNode(parent?: SplitNode): void }
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
/** A mail may have one of each (RFC 5322, section 3.6). Of several the first counts here; mailparser takes the last. */
const firstOnly = new Set(['from', 'reply-to'])

export class TreeParser extends MailParser {
  /** Whether headers of parts were left out. */
  arePartHeadersCut = false
  private partHeaderBytes = 0

  /** `maxPartHeaderBytes` is what the headers of all parts, the mail itself apart, may take together. */
  constructor(
    options: MailParserOptions,
    private readonly maxPartHeaderBytes: number,
  ) {
    super(options)
    const { splitter } = this
    const newNode = splitter.newNode.bind(splitter)
    readHeaderLines(splitter.node, (line) => line)
    splitter.newNode = (parent) => {
      newNode(parent)
      readHeaderLines(splitter.node, (line) => this.withinHeaders(line))
    }
  }

  private withinHeaders(line: Buffer): Buffer | undefined {
    this.partHeaderBytes += line.length
    if (this.partHeaderBytes <= this.maxPartHeaderBytes) return line
    this.arePartHeadersCut = true
    return undefined
  }

  override processHeaders(lines: HeaderLine[]): Headers {
    const seen = new Set<string>()
    const wanted = lines.filter(({ key }) => {
      if (!structuralHeaders.has(key) || (firstOnly.has(key) && seen.has(key))) return false
      seen.add(key)
      return true
    })
    return super.processHeaders(wanted.map(asUtf8))
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

/**
 * A lone CR is no line's end (RFC 5322, section 2.2) and no part of a header either; the library takes quadratic time on
 * runs of them.
 */
function readHeaderLines(node: SplitNode, pass: (line: Buffer) => Buffer | undefined): void {
  const add = node.addHeaderChunk.bind(node)
  node.addHeaderChunk = (line) => add(line === undefined ? undefined : pass(withoutLoneCr(line)))
}

function withoutLoneCr(line: Buffer): Buffer {
  const first = line.indexOf(CR)
  if (first === -1 || first >= line.length - 2) return line
  return Buffer.from(line.toString('latin1').replace(/\r(?!\n)/g, ' '), 'latin1')
}

function asUtf8({ key, line }: HeaderLine): HeaderLine {
  return { key, line: Buffer.from(headerText(line)).toString('latin1') }
}
