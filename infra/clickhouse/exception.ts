/** An exception of ClickHouse: a number, a name, and a text that has both. */
export class ClickHouseException extends Error {
  override readonly name = 'ClickHouseException'

  constructor(
    readonly code: number,
    readonly type: string,
    message: string,
  ) {
    super(message)
  }

  text(version: string): string {
    return `Code: ${this.code}. DB::Exception: ${this.message} (${this.type}) (version ${version})\n`
  }

  /** The HTTP statuses of ClickHouse's exceptions, as far as Mayfly needs them. */
  get status(): number {
    const [, status = 500] = STATUS.find(([types]) => types.test(this.type)) ?? []
    return status
  }
}

const STATUS: readonly (readonly [RegExp, number])[] = [
  [/^AUTHENTICATION_FAILED$/, 403],
  [/^UNKNOWN_(TABLE|DATABASE|FUNCTION|IDENTIFIER|TYPE|SETTING|FORMAT|STORAGE)$/, 404],
  [/^(SYNTAX_ERROR|INCORRECT_DATA|TYPE_MISMATCH|BAD_QUERY_PARAMETER|CANNOT_PARSE_\w+)$/, 400],
  [/^TIMEOUT_EXCEEDED$/, 408],
  [/^TOO_MANY_BYTES$/, 413],
  [/^NOT_IMPLEMENTED$/, 501],
]

const REPEATED = /^Code: \d+\. DB::Exception: (?=Code: \d+\. DB::Exception: )/
const VERSION = / \(version [^)]*\)(\. \([A-Z][A-Z0-9_]+\))?\s*$/
const WHOLE = /^Code: (\d+)\. DB::Exception: ([^]*) \(([A-Z][A-Z0-9_]+)\)\s*$/

/** Parses an error of the engine, which may nest one message in another. */
export function exceptionFrom(error: unknown): ClickHouseException {
  if (error instanceof ClickHouseException) return error
  const text = error instanceof Error ? error.message : String(error)
  const [, code, message = '', type = ''] = WHOLE.exec(text.replace(REPEATED, '').replace(VERSION, '')) ?? []
  if (code === undefined) return new ClickHouseException(1002, 'UNKNOWN_EXCEPTION', text)
  return new ClickHouseException(Number(code), type, message)
}

export function badArguments(message: string): ClickHouseException {
  return new ClickHouseException(36, 'BAD_ARGUMENTS', message)
}

export function notImplemented(message: string): ClickHouseException {
  return new ClickHouseException(48, 'NOT_IMPLEMENTED', message)
}

export function syntaxError(message: string): ClickHouseException {
  return new ClickHouseException(62, 'SYNTAX_ERROR', message)
}
