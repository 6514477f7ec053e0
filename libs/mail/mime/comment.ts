/** Just past the comment that begins at a bracket (RFC 5322, section 3.2.2); past the text's end where it is never closed. */
export function endOfComment(text: string, start: number): number {
  let depth = 0
  let at = start
  for (; at < text.length; at++) {
    const character = text[at]
    if (character === '\\') at++
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) break
  }
  return at + 1
}
