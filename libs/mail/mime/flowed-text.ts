const signature = '-- '

/**
 * Text in format=flowed with its soft line breaks taken out (RFC 3676, section 4): paragraphs become lines,
 * space-stuffing goes, quotes keep their depth, the signature's separator stays a line. The last line break is dropped.
 */
export function unflow(text: string, deletesSpace: boolean): string {
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
