/** A run of letters and digits. */
export interface Token {
  start: number
  end: number
  hasDigit: boolean
  hasUpper: boolean
  hasLower: boolean
}

/** Tokens joined by hyphens. */
export interface Group {
  start: number
  end: number
  tokens: Token[]
}

/** What in a text might be a code or a part of one, in one pass; ordinary words are left out. */
export function* groups(text: string): Generator<Group> {
  let group: Group | null = null
  for (const token of tokens(text)) {
    if (group !== null && group.end + 1 === token.start && isHyphen(text.charCodeAt(group.end))) {
      group.tokens.push(token)
      group.end = token.end
      continue
    }
    if (group !== null) yield group
    group = { start: token.start, end: token.end, tokens: [token] }
  }
  if (group !== null) yield group
}

function* tokens(text: string): Generator<Token> {
  let start = 0
  while (start < text.length) {
    let seen = characterKind(text.charCodeAt(start))
    if (seen === 0) {
      start++
      continue
    }
    let end = start + 1
    for (; end < text.length; end++) {
      const kind = characterKind(text.charCodeAt(end))
      if (kind === 0) break
      seen |= kind
    }
    // Ordinary words matter only where a hyphen joins them to something.
    if ((seen & digit) !== 0 || seen === upper || isNearHyphen(text, start, end)) {
      yield {
        start,
        end,
        hasDigit: (seen & digit) !== 0,
        hasUpper: (seen & upper) !== 0,
        hasLower: (seen & lower) !== 0,
      }
    }
    start = end
  }
}

function isNearHyphen(text: string, start: number, end: number): boolean {
  return (
    (start > 0 && isHyphen(text.charCodeAt(start - 1))) ||
    (end < text.length && isHyphen(text.charCodeAt(end)))
  )
}

const digit = 1
const upper = 2
const lower = 4

/** Of ASCII characters; 0 is what separates words. */
const asciiKinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[0-9]/.test(character)) return digit
  if (/[A-Z]/.test(character)) return upper
  return /[a-z]/.test(character) ? lower : 0
})

/** Letters with accents, Greek, Cyrillic, Hebrew and Arabic count as lower case: no part of a code, nor its edge. */
function characterKind(code: number): number {
  if (code < 128) return asciiKinds[code] ?? 0
  const isLetter =
    (code >= 0xc0 && code <= 0x52f && code !== 0xd7 && code !== 0xf7) || (code >= 0x5d0 && code <= 0x64a)
  return isLetter ? lower : 0
}

/** The hyphens, and the dashes up to the en dash. */
export function isHyphen(code: number): boolean {
  return code === 0x2d || (code >= 0x2010 && code <= 0x2013)
}
