import { decodeBase64, decodeQuotedPrintable } from './transfer-encodings.js'
import { decodeText } from './charset.js'
import { replaceEach } from './long-text.js'
import type { Warning } from '../message.js'
import type { Part } from './well-formed.js'

const identities = new Set(['', '7bit', '8bit', 'binary', '7-bit', '8-bit', '7 bit', '8 bit'])
/** HTML may name its charset in a meta element; the Encoding Standard's look-out for it is 1,024 bytes, mail has longer heads. */
const metaBytes = 4_096
const metaCharset = /<meta\b[^>]{0,500}?\bcharset\s{0,10}=\s{0,10}["']?\s{0,10}([^\s"'/>;]{1,40})/i

/** The text of a part that is shown, with line breaks as LF; adds to the warnings. */
export function bodyText(part: Part, warnings: Warning[]): string {
  const { header } = part
  const bytes = decodedBody(part, warnings)
  const charset = header.charset || (header.shownAs === 'text/html' ? declaredInHtml(bytes) : null)
  const { text, guessed } = decodeText(bytes, charset)
  if (guessed !== null) {
    const declared = charset ? `declared as "${charset.slice(0, 40).toWellFormed()}"` : 'without a charset'
    warnings.push({ code: 'charset-guessed', detail: `A text ${declared} was read as ${guessed}.` })
  }
  const lines = replaceEach(text, '\r\n', '\n')
  return header.isFlowed && header.type === 'text/plain' ? unflow(lines, header.deletesSpace) : lines
}

/**
 * The body of a part with its transfer encoding undone; adds to the warnings. If the encoding is not known, the body
 * stays as it is: RFC 2045, section 6.4, would have such text kept from the reader altogether.
 */
export function decodedBody({ header: { encoding, type }, body }: Part, warnings: Warning[]): Buffer {
  if (encoding === 'quoted-printable') return decodeQuotedPrintable(body)
  if (encoding === 'base64') return decodeBase64(body)
  if (!identities.has(encoding) && !type.startsWith('multipart/')) {
    const named = encoding.slice(0, 40).toWellFormed()
    const detail = `The transfer encoding "${named}" is not known; a part is given undecoded.`
    warnings.push({ code: 'unknown-encoding', detail })
  }
  return body
}

function declaredInHtml(bytes: Buffer): string | null {
  const [, label = ''] = metaCharset.exec(bytes.toString('latin1', 0, metaBytes)) ?? []
  // What was found one byte a character can't be UTF-16.
  return label === '' ? null : label.replace(/^utf-?(?:16|32).*$/i, 'utf-8')
}

const signature = '-- '

/**
 * Text in format=flowed with its soft line breaks taken out (RFC 3676, section 4): paragraphs become lines,
 * space-stuffing goes, quotes keep their depth, the signature's separator stays a line. The last line break is dropped.
 */
function unflow(text: string, deletesSpace: boolean): string {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const paragraphs: string[] = []
  let pieces: string[] = []
  let depth = 0
  let isOpen = false
  const end = () => {
    if (pieces.length > 0) paragraphs.push(quote(pieces.join(''), depth))
    pieces = []
  }
  for (const line of lines) {
    const lineDepth = quoteDepth(line)
    let content = line.slice(lineDepth)
    if (content.startsWith(' ')) content = content.slice(1)
    const isSignature = content === signature
    if (!isOpen || lineDepth !== depth || isSignature) {
      end()
      depth = lineDepth
    } else if (deletesSpace) {
      const last = pieces.pop() ?? ''
      pieces.push(last.slice(0, -1))
    }
    pieces.push(content)
    isOpen = content.endsWith(' ') && !isSignature
  }
  end()
  return paragraphs.join('\n')
}

function quoteDepth(line: string): number {
  let depth = 0
  while (line[depth] === '>') depth++
  return depth
}

function quote(text: string, depth: number): string {
  if (depth === 0) return text
  return '>'.repeat(depth) + (text === '' ? '' : ` ${text}`)
}
