/** The properties of a statement that the HTTP server needs before it runs it. */
export interface Statement {
  isEmpty: boolean
  /** If the statement is an INSERT with data; otherwise null. */
  insert: InsertOfData | null
  /** Whether another statement follows it. */
  isFollowed: boolean
  /** The format of its result, if it names one. */
  format: string | null
  /** Whether its result has more than rows: totals, extremes, an array around the rows. */
  asksForMoreThanRows: boolean
}

export interface InsertOfData {
  /** Index at which SETTINGS or FORMAT begin, where a source can be inserted. */
  sourceAt: number
  /** Index at which VALUES or FORMAT begin. */
  formatAt: number
  format: string
  dataAt: number
  /** Whether it reads the data with a query, through input(). */
  isByQuery: boolean
}

/** Comments, quoted text of every kind, words, and single characters. */
const TOKEN =
  /\s+|--[^\n]*|#[ !][^\n]*|\/\*[^]*?\*\/|'[^'\\]*(?:(?:\\[^]|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\[^]|"")[^"\\]*)*"|`[^`\\]*(?:(?:\\[^]|``)[^`\\]*)*`|\$(\w*)\$[^]*?\$\1\$|\w+|[^]/y
const BETWEEN_TOKENS = /^(\s|--|#[ !]|\/\*)/
const MORE_THAN_ROWS = /^(totals|extremes|output_format_json_array_of_rows)$/i

/** Reads a statement up to the start of its data. Each character represents one byte or more. */
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
        // The rest is data.
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

/** Each token with its index. */
function* tokensOf(sql: string): Generator<[string, number]> {
  const pattern = new RegExp(TOKEN)
  for (let match = pattern.exec(sql); match !== null; match = pattern.exec(sql)) {
    const [token] = match
    if (!BETWEEN_TOKENS.test(token)) yield [token, match.index]
  }
}
