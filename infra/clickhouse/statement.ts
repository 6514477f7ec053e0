/** What the front must know of a statement before the engine has it. */
export interface Statement {
  isEmpty: boolean
  /** Of an INSERT that data follows; null for any other. */
  insert: InsertOfData | null
  /** Whether another statement follows it. */
  isFollowed: boolean
  /** Of its result, where it names one. */
  format: string | null
  /** Whether it asks for what is no row: totals, extremes, an array around the rows. */
  asksForMoreThanRows: boolean
}

export interface InsertOfData {
  /** Where settings and format begin, and the whole text has the place for a source. */
  sourceAt: number
  /** Where VALUES or FORMAT begin. */
  formatAt: number
  format: string
  dataAt: number
  /** Whether it reads the data by a query, through input(). */
  isByQuery: boolean
}

/** Comments, quoted text of every kind, words, and single characters. */
const TOKEN =
  /\s+|--[^\n]*|#[ !][^\n]*|\/\*[^]*?\*\/|'[^'\\]*(?:(?:\\[^]|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\[^]|"")[^"\\]*)*"|`[^`\\]*(?:(?:\\[^]|``)[^`\\]*)*`|\$(\w*)\$[^]*?\$\1\$|\w+|[^]/y
const BETWEEN_TOKENS = /^(\s|--|#[ !]|\/\*)/
const MORE_THAN_ROWS = /^(totals|extremes|output_format_json_array_of_rows)$/i

/** Reads a statement no further than to where its data begins. Each character stands for one byte or more. */
export function readStatement(sql: string): Statement {
  let first = ''
  let depth = 0
  let before = ''
  let hasSelect = false
  let hasEnded = false
  let isFollowed = false
  let asksForMoreThanRows = false
  let format: string | null = null
  let insert: InsertOfData | null = null
  const at: Record<string, number> = {}
  for (const [token, begin] of tokensOf(sql)) {
    if (hasEnded) {
      if (token === ';') continue
      isFollowed = true
      break
    }
    const word = token.toUpperCase()
    if (first === '' && token !== '(') first = word
    if (MORE_THAN_ROWS.test(token)) asksForMoreThanRows = true
    if (token === '(') depth += 1
    else if (token === ')') depth -= 1
    else if (depth === 0 && token === ';') hasEnded = true
    else if (depth === 0) {
      if (word === 'SELECT') hasSelect = true
      const beginsData = before === 'FORMAT' || (word === 'VALUES' && !hasSelect)
      if (first === 'INSERT' && beginsData) {
        // What follows is data, in which no statement is looked for.
        const formatAt = before === 'FORMAT' ? (at.FORMAT ?? begin) : begin
        const [space = ''] =
          /^[ \t\f]*(\r?\n)?/.exec(sql.slice(begin + token.length, begin + token.length + 64)) ?? []
        insert = {
          sourceAt: at.SETTINGS ?? formatAt,
          formatAt,
          format: before === 'FORMAT' ? token : 'Values',
          dataAt: begin + token.length + space.length,
          isByQuery: hasSelect,
        }
        break
      }
      at[word] = begin
      if (before === 'FORMAT' && /^\w+$/.test(token)) format = token
    }
    before = depth === 0 ? word : ''
  }
  return { isEmpty: first === '', insert, isFollowed, format, asksForMoreThanRows }
}

/** Each with where it begins. */
function* tokensOf(sql: string): Generator<[string, number]> {
  const pattern = new RegExp(TOKEN)
  for (let match = pattern.exec(sql); match !== null; match = pattern.exec(sql)) {
    const [token] = match
    if (!BETWEEN_TOKENS.test(token)) yield [token, match.index]
  }
}
