import type { PartHeader } from './part-header.js'
import { MAX_DELIMITER_LENGTH } from './parts.js'

/*
 * Types of mailsplit (5.4.18), the splitter of mailparser, and a correction of how it finds delimiters, for
 * `read-tree.ts`.
 */

/** A part as the splitter creates it. */
export interface SplitPart {
  type: 'node'
  parentNode: SplitPart | false
  multipart: string | false
  /** False until they are read. */
  headers: PartHeader | false
  _headersLines: Buffer[]
  _headerlen: number
  _boundary: Buffer | false
  /** The enclosing multipart whose delimiters are looked for, besides the part's own. */
  _parentBoundaryOwner: SplitPart | false
  addHeaderChunk(line: Buffer): void
  parseHeaders(): void
}

/** A piece of a body (`body`), or of the text around the parts of a multipart (`data`). */
export interface Chunk {
  type: 'body' | 'data'
  node: SplitPart
  value?: Buffer
}

export interface Splitter {
  node: SplitPart
  state: number
  inEpilogue: boolean
  newNode(parent?: SplitPart | false): void
  checkBoundary(line: Buffer): 1 | 2 | 3 | 4 | false
  /** Null ends the stream. */
  push(chunk: Chunk | SplitPart | null): boolean
}

const HEAD = 1

/** Makes a splitter find the delimiters of RFC 2046, and end each body where its delimiter begins. */
export function correctDelimiters(splitter: Splitter): void {
  let delimiter: Buffer | null = null
  splitter.checkBoundary = (line) => {
    const found = checkDelimiter(splitter, line)
    if (found !== false) delimiter = line
    return found
  }
  const push = splitter.push.bind(splitter)
  splitter.push = (chunk) => {
    if (chunk?.type === 'body' && chunk.value !== undefined && delimiter !== null) {
      chunk.value = withoutLineEnd(chunk.value, delimiter)
    }
    return push(chunk)
  }
}

/**
 * Whether a line is a delimiter, possibly with white space after it (RFC 2046, section 5.1.1): 1 for the next part and
 * 2 for the end of the current multipart, 3 and 4 for those of an enclosing one. Unlike the splitter's own check, this
 * finds the delimiters of all enclosing multiparts, because an inner one may lack its end (section 5.1.2).
 */
function checkDelimiter(splitter: Splitter, line: Buffer): 1 | 2 | 3 | 4 | false {
  let start = 0
  if (line[start] === 13) start++
  if (line[start] === 10) start++
  if (line[start] !== 45 || line[start + 1] !== 45 || line.length > MAX_DELIMITER_LENGTH) return false
  const text = line.toString('latin1', start + 2).trimEnd()
  if (text === '') return false
  const { node } = splitter
  const own = boundaryOf(node)
  if (own !== null && !splitter.inEpilogue) {
    if (text === own) return 1
    if (text === `${own}--`) return 2
  }
  for (let owner = node._parentBoundaryOwner; owner; owner = owner._parentBoundaryOwner) {
    const boundary = boundaryOf(owner)
    if (boundary === null || !text.startsWith(boundary)) continue
    if (text.length > boundary.length && text !== `${boundary}--`) continue
    node._parentBoundaryOwner = owner
    if (text.length > boundary.length) return 4
    // Without this, a part that ends within its header would be lost.
    if (splitter.state === HEAD && node._headerlen > 0 && node.headers === false) {
      node.parseHeaders()
      splitter.push(node)
    }
    return 3
  }
  return false
}

function boundaryOf({ headers }: SplitPart): string | null {
  return headers === false ? null : headers.boundary
}

/**
 * Removes the line break before a delimiter, which belongs to the delimiter (RFC 2046, section 5.1.1), even if it is
 * the whole body.
 */
function withoutLineEnd(body: Buffer, delimiter: Buffer): Buffer {
  const end = body.byteOffset + body.length
  if (body.buffer !== delimiter.buffer || end !== delimiter.byteOffset || body.at(-1) !== 10) return body
  return body.subarray(0, body.at(-2) === 13 ? -2 : -1)
}
