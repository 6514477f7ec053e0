import {
  isTokenAtKeyword,
  isTokenComment,
  isTokenDelim,
  isTokenDimension,
  isTokenFunction,
  isTokenHash,
  isTokenIdent,
  isTokenPercentage,
  isTokenString,
  isTokenURL,
  tokenizer,
  TokenType,
  type CSSToken,
} from '@csstools/css-tokenizer'
import { imageUses, type OnUse } from './image-uses.js'

/*
 * What a stylesheet or a style attribute uses. Takes linear time and little memory for any input.
 */

/** Tokens of a selector or declaration that are read. */
const MAX_TOKENS = 10_000

/** What the statements in a block are. */
type Block = 'rules' | 'keyframes' | 'declarations'

/** At-rules whose blocks have what the block around them has. */
const GROUPS = new Set(['media', 'supports', 'layer', 'container', 'document', 'scope', 'starting-style'])
const SPACES: ReadonlySet<TokenType> = new Set([
  TokenType.Whitespace,
  TokenType.Comment,
  TokenType.CDO,
  TokenType.CDC,
])

/** `start` is added to the positions of uses. */
export function readCss(css: string, outermost: Block, start: number, onUse: OnUse): void {
  const tokens = tokenizer({ css })
  const blocks: Block[] = []
  let block = outermost
  let statement: CSSToken[] = []
  const use: OnUse = (name, at) => onUse(name, start + at)
  while (!tokens.endOfFile()) {
    const token = tokens.nextToken()
    const [type] = token
    if (isTokenComment(token)) use('css:comment', token[2])
    if (type === TokenType.OpenCurly) {
      blocks.push(block)
      block = readPrelude(statement, block, use)
    } else if (type === TokenType.CloseCurly) {
      readStatement(statement, block, use)
      block = blocks.pop() ?? outermost
    } else if (type === TokenType.Semicolon) readStatement(statement, block, use)
    else {
      if (statement.length < MAX_TOKENS && (statement.length > 0 || !SPACES.has(type))) statement.push(token)
      continue
    }
    statement = []
  }
  readStatement(statement, block, use)
}

/** What is before a block. Returns what is in the block. */
function readPrelude(tokens: readonly CSSToken[], around: Block, use: OnUse): Block {
  const [first] = tokens
  if (isTokenAtKeyword(first)) {
    const name = readAtRule(tokens, use)
    if (GROUPS.has(name)) return around
    return name.endsWith('keyframes') ? 'keyframes' : 'declarations'
  }
  if (around === 'keyframes' || first === undefined) return 'declarations'
  if (around === 'declarations') use('css:nesting', first[2])
  readSelectors(tokens, use)
  return 'declarations'
}

function readStatement(tokens: readonly CSSToken[], block: Block, use: OnUse): void {
  const [first] = tokens
  if (isTokenAtKeyword(first)) readAtRule(tokens, use)
  else if (block === 'declarations' && isTokenIdent(first)) readDeclaration(first[4].value, tokens, use)
}

/** Returns the name of the rule. */
function readAtRule(tokens: readonly CSSToken[], use: OnUse): string {
  const [first] = tokens
  if (!isTokenAtKeyword(first)) return ''
  const name = first[4].value.toLowerCase()
  use(`at-rule:${name}`, first[2])
  if (name !== 'media' && name !== 'import') return name
  const significant = tokens.filter(([type]) => !SPACES.has(type))
  for (const [index, token] of significant.entries()) {
    if (significant[index - 1]?.[0] !== TokenType.OpenParen || !isTokenIdent(token)) continue
    use(`media:${token[4].value.toLowerCase()}`, token[2])
  }
  return name
}

function readDeclaration(written: string, tokens: readonly CSSToken[], use: OnUse): void {
  const significant = tokens.filter(([type]) => !SPACES.has(type))
  const [first, colon, ...values] = significant
  if (first === undefined || colon?.[0] !== TokenType.Colon) return
  const at = first[2]
  const isVariable = written.startsWith('--')
  const property = written.toLowerCase()
  use(isVariable ? 'css:variable' : `property:${property}`, at)
  const words: string[] = []
  for (const [index, token] of values.entries()) {
    const before = values[index - 1]
    if (isTokenIdent(token)) {
      const word = token[4].value.toLowerCase()
      if (isDelim(before, '!')) {
        if (word === 'important') use('css:important', at)
        continue
      }
      words.push(word)
      use(`keyword:${word}`, at)
    } else if (isDelim(token, '!')) continue
    else {
      words.push('')
      if (isTokenFunction(token)) use(`function:${token[4].value.toLowerCase()}`, at)
      else if (isTokenDimension(token)) use(`unit:${token[4].unit.toLowerCase()}`, at)
      else if (isTokenPercentage(token)) use('unit:%', at)
      else if (isTokenURL(token)) imageUses(token[4].value, at, use)
      else if (isTokenString(token) && isTokenFunction(before) && before[4].value.toLowerCase() === 'url')
        imageUses(token[4].value, at, use)
    }
  }
  const [word = ''] = words
  if (words.length === 1 && word !== '') use(`value:${property}:${word}`, at)
}

const COMBINATORS = new Map([
  ['>', 'child'],
  ['+', 'adjacent'],
  ['~', 'sibling'],
])

function readSelectors(tokens: readonly CSSToken[], use: OnUse): void {
  const at = tokens[0]?.[2] ?? 0
  let depth = 0
  let isGroup = false
  /** Classes of the compound selector so far; null before it begins. */
  let classes: number | null = null
  let isSpaced = false
  const begin = () => {
    if (isSpaced && classes !== null) {
      use('selector:descendant', at)
      classes = null
    }
    isSpaced = false
    classes ??= 0
  }
  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index]
    const next = tokens[index + 1]
    if (token === undefined || isTokenComment(token)) continue
    const [type] = token
    if (type === TokenType.Whitespace) isSpaced = true
    else if (isTokenDelim(token) && COMBINATORS.has(token[4].value)) {
      use(`selector:${COMBINATORS.get(token[4].value)}`, at)
      classes = null
      isSpaced = false
    } else if (type === TokenType.Comma) {
      if (depth === 0) isGroup = true
      classes = null
      isSpaced = false
    } else if (type === TokenType.CloseParen) depth -= 1
    else {
      begin()
      if (isTokenIdent(token)) use('selector:type', at)
      else if (isTokenHash(token)) use('selector:id', at)
      else if (isDelim(token, '*')) use('selector:universal', at)
      else if (isDelim(token, '&')) use('css:nesting', at)
      else if (isDelim(token, '.') && isTokenIdent(next)) {
        use('selector:class', at)
        classes = (classes ?? 0) + 1
        if (classes === 2) use('selector:chaining', at)
        index += 1
      } else if (type === TokenType.OpenSquare) {
        use('selector:attribute', at)
        while (index < tokens.length && tokens[index]?.[0] !== TokenType.CloseSquare) index += 1
      } else if (type === TokenType.Colon && (isTokenIdent(next) || isTokenFunction(next))) {
        use(`pseudo:${next[4].value.toLowerCase()}`, at)
        index += 1
        if (isTokenFunction(next)) {
          depth += 1
          classes = null
        }
      }
    }
  }
  if (isGroup) use('selector:grouping', at)
}

function isDelim(token: CSSToken | undefined, value: string): boolean {
  return isTokenDelim(token) && token[4].value === value
}
