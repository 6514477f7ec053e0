import {
  isTokenAtKeyword,
  isTokenBadString,
  isTokenBadURL,
  isTokenCDO,
  isTokenComment,
  isTokenDelim,
  isTokenFunction,
  isTokenIdent,
  isTokenString,
  isTokenURL,
  tokenize,
  TokenType,
  type CSSToken,
  type TokenAtKeyword,
  type TokenFunction,
} from '@csstools/css-tokenizer'
import type { MailImages } from './mail-images.js'

/*
 * The styles of a mail, without anything that loads or runs. Works on the tokens of CSS Syntax Level 3, as browsers do,
 * so that escapes and comments hide nothing: no token of the result is a URL, function or at-rule that is not listed
 * here, however the mail nests its blocks. No `<` is left either: what is removed between `</style` and `>` would make
 * an end tag of them, and the rest of the styles would be HTML.
 */

/** Not `keyframes`: animations of large elements take the memory of the whole browser. */
const AT_RULES = new Set(['media', 'supports'])

/** Functions of values and selectors. None of them loads anything. Filters are left out for the same reason. */
const FUNCTIONS = new Set(
  (
    'rgb rgba hsl hsla hwb lab lch oklab oklch color color-mix light-dark calc min max clamp var env ' +
    'linear-gradient radial-gradient conic-gradient repeating-linear-gradient repeating-radial-gradient ' +
    '-webkit-linear-gradient -webkit-gradient -moz-linear-gradient from to color-stop ' +
    'translate translatex translatey scale scalex scaley rotate rotatex rotatey skew skewx skewy matrix ' +
    'cubic-bezier steps minmax repeat fit-content rect inset circle ellipse polygon counter counters ' +
    'not is where lang dir nth-child nth-last-child nth-of-type nth-last-of-type'
  ).split(' '),
)

/** Properties that make a browser lay out millions of columns. Classes may have these names too. */
const COLUMNS = /^(?:-webkit-|-moz-)?column(?:s|-count|-width)$/i

/** Replaces what is removed. As a value it means "no image", and the spaces keep the tokens around it apart. */
const REMOVED = ' none '

/** A style attribute without a match has nothing to remove: no function, URL, escape, `<` or columns. */
const SUSPECT = /[(\\<]|column/i

/** An escape, so that the character after a backslash is not taken for another one; or a `<`. */
const ESCAPE_OR_LESS_THAN = /\\[^]|</g
const ESCAPED_LESS_THAN = '\\3c '

export function safeDeclarations(style: string, images: MailImages): string {
  return SUSPECT.test(style) ? safeStyles(style, images) : style
}

export function safeStyles(css: string, images: MailImages): string {
  const tokens = tokenize({ css })
  const imageAt = (reference: string) => {
    const url = images.urlOf(reference)
    return url === null ? REMOVED : `url("${url.replaceAll('\\', '%5C')}")`
  }
  let safe = ''
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at]
    if (token === undefined) break
    if (isTokenURL(token)) safe += imageAt(token[4].value)
    else if (isTokenBadURL(token) || isTokenBadString(token) || isDelim(token, '<')) safe += REMOVED
    else if (isTokenIdent(token) && COLUMNS.test(token[4].value) && !isDelim(tokens[at - 1], '.'))
      safe += REMOVED
    else if (isTokenComment(token)) safe += '/**/'
    // Old mails have their styles in an HTML comment, which browsers ignore.
    else if (isTokenCDO(token)) safe += ' '
    else if (isTokenFunction(token) && !FUNCTIONS.has(nameOf(token))) {
      const end = endOfFunction(tokens, at)
      safe += nameOf(token) === 'url' ? imageAt(firstString(tokens.slice(at, end))) : REMOVED
      at = end
    } else if (isTokenAtKeyword(token) && !AT_RULES.has(nameOf(token))) {
      safe += ' '
      at = endOfRule(tokens, at)
    } else safe += withoutLessThan(token[1])
  }
  return safe
}

/** The same string or name. `<` may be in a string, and escaped in a name. */
function withoutLessThan(written: string): string {
  if (!written.includes('<')) return written
  return written.replace(ESCAPE_OR_LESS_THAN, (found) => (found.endsWith('<') ? ESCAPED_LESS_THAN : found))
}

function isDelim(token: CSSToken | undefined, value: string): boolean {
  return isTokenDelim(token) && token[4].value === value
}

function nameOf(token: TokenFunction | TokenAtKeyword): string {
  return token[4].value.toLowerCase()
}

/** The index of the parenthesis that closes the function at `start`, or of the last token. */
function endOfFunction(tokens: readonly CSSToken[], start: number): number {
  let depth = 0
  for (let at = start; at < tokens.length; at += 1) {
    const type = tokens[at]?.[0]
    if (type === TokenType.Function || type === TokenType.OpenParen) depth += 1
    else if (type === TokenType.CloseParen) depth -= 1
    if (depth === 0) return at
  }
  return tokens.length - 1
}

/** The index of the semicolon or brace that ends the at-rule at `start`, or of the last token. */
function endOfRule(tokens: readonly CSSToken[], start: number): number {
  let depth = 0
  for (let at = start; at < tokens.length; at += 1) {
    const type = tokens[at]?.[0]
    if (type === TokenType.OpenCurly) depth += 1
    else if (type === TokenType.CloseCurly) depth -= 1
    if (depth < 0) return at - 1
    if (depth === 0 && (type === TokenType.Semicolon || type === TokenType.CloseCurly)) return at
  }
  return tokens.length - 1
}

function firstString(tokens: readonly CSSToken[]): string {
  for (const token of tokens) if (isTokenString(token)) return token[4].value
  return ''
}
