import { bareUrls } from '../links/bare-urls.js'
import { quotedRanges } from './code-quotes.js'

/** Stands in for what is no text to search; neither letter nor digit. */
const blank = '\ue000'

// ISO 13616: a country, two check digits, and up to 30 characters in fours.
const iban = /(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3})?(?![0-9A-Za-z])/g

/** Blanks out addresses, account numbers, and what the mail quotes: no code stands there, and their words are none of its own. */
export function withoutForeignText(text: string, isAnswer: boolean): string {
  const ranges: { start: number; end: number }[] = [...quotedRanges(text, isAnswer)]
  if (text.includes('://')) ranges.push(...bareUrls(text))
  if (text.includes('www.')) {
    for (const match of text.matchAll(/www\.[^\s<>"]+/gi)) {
      ranges.push({ start: match.index, end: match.index + match[0].length })
    }
  }
  for (const match of text.matchAll(iban)) {
    if (match[0].length >= 15) ranges.push({ start: match.index, end: match.index + match[0].length })
  }
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) ranges.push(mailbox(text, at))
  if (ranges.length === 0) return text
  ranges.sort((one, other) => one.start - other.start)
  const pieces: string[] = []
  let done = 0
  for (const { start, end } of ranges) {
    if (end <= done) continue
    const from = Math.max(start, done)
    pieces.push(text.slice(done, from), blank.repeat(end - from))
    done = end
  }
  pieces.push(text.slice(done))
  return pieces.join('')
}

const maxMailboxSide = 64

function mailbox(text: string, at: number): { start: number; end: number } {
  let start = at
  while (start > 0 && at - start < maxMailboxSide && isMailboxCharacter(text.charCodeAt(start - 1))) start--
  let end = at + 1
  while (end - at < maxMailboxSide && isMailboxCharacter(text.charCodeAt(end))) end++
  return start === at ? { start: at, end: at } : { start, end }
}

/** Letters, digits, and `.`, `+`, `-`, `_`. */
function isMailboxCharacter(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x2e ||
    code === 0x2b ||
    code === 0x2d ||
    code === 0x5f
  )
}
