import { randomUUID } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Session } from 'chdb'
import { exceptionFrom, syntaxError } from './exception.js'
import type { Statement } from './statement.js'

/*
 * chDB: ClickHouse itself, in this process. Each request has its own session on the same data, so that settings,
 * parameters and the database of one request never affect another one. A session costs half a millisecond. This relies
 * on chdb 3.4: the joined chunks of a stream are the whole result for formats without a prefix and suffix; a statement
 * that can't be streamed is refused before it runs. Data to insert is passed in a file, because after a statement the
 * engine treats an empty line as the end of the data in any format, and silently drops the rest.
 */

export interface Query {
  statement: Statement
  /** If the statement is an INSERT of data: the SQL that reads the data from a file. */
  sql: string | ((source: string) => string)
  data: Buffer | null
  settings: Readonly<Record<string, string>>
  /** In the format of the HTTP interface, with TabSeparated escaping. */
  parameters: Readonly<Record<string, string>>
  database: string | null
  /** Default format of the result. */
  format: string
  isReadOnly: boolean
  /** Whether to answer only once the result is complete. */
  isHeld: boolean
}

export interface Outcome {
  /** Null if there is no result. */
  format: string | null
  pieces: AsyncIterable<Uint8Array>
  /** Must be called when no more chunks are needed. */
  end(): Promise<void>
  readRows: number
  readBytes: number
  writtenRows: number
  writtenBytes: number
  elapsedS: number
}

/** Settings in which a server differs from clickhouse-local, on which chDB is based. */
const AS_A_SERVER = {
  implicit_select: '0',
  allow_introspection_functions: '0',
  throw_if_no_data_to_insert: '0',
}
/** Formats whose joined chunks are the result. In other formats each chunk would be a separate document. */
const STREAMED =
  /^(JSON(Compact)?(Strings)?EachRow|JSONL|JSONLines|NDJSON|CSV|TSV|TabSeparated|TSVRaw|TabSeparatedRaw|RowBinary|Native)$/
const NOT_STREAMED = /Streaming query is not supported/

export class Engine {
  private constructor(
    private readonly folder: string,
    /** Keeps the engine loaded between requests. */
    private readonly kept: Session,
    private readonly uploads: string,
    readonly version: string,
  ) {}

  /** Throws if another process has the folder open. */
  static async open(folder: string): Promise<Engine> {
    const kept = new Session(folder)
    const uploads = `${folder}-uploads`
    // Left by a process that was killed.
    await rm(uploads, { recursive: true, force: true })
    await mkdir(uploads)
    const version = (await kept.queryAsync('SELECT version()', { format: 'TSVRaw' })).text().trim()
    return new Engine(folder, kept, uploads, version)
  }

  /** Resolves once the first chunk of the result is available, or the insert is complete. Rejects like ClickHouse. */
  async run(query: Query): Promise<Outcome> {
    const session = new Session(this.folder)
    try {
      await session.queryAsync(preludeOf(query))
      if (query.statement.isEmpty) throw syntaxError('Syntax error: Empty query.')
      if (query.statement.isFollowed) throw syntaxError('Syntax error (Multi-statements are not allowed).')
      const { sql, data } = query
      if (typeof sql !== 'string') return await this.insert(session, sql, data ?? Buffer.alloc(0))
      return (await stream(session, query, sql)) ?? (await whole(session, query, sql))
    } catch (error) {
      session.close()
      throw exceptionFrom(error)
    }
  }

  /** Call it only after every outcome has been read. */
  close(): void {
    this.kept.close()
  }

  private async insert(session: Session, sql: (source: string) => string, data: Buffer): Promise<Outcome> {
    const path = join(this.uploads, randomUUID())
    try {
      await writeFile(path, data)
      const result = await session.queryAsync(sql(`${quoted(path, "'")} COMPRESSION 'none'`))
      session.close()
      const { rowsRead, bytesRead, elapsed } = result
      return { ...NOTHING, writtenRows: rowsRead, writtenBytes: bytesRead, elapsedS: elapsed }
    } finally {
      await rm(path, { force: true })
    }
  }
}

const NOTHING: Outcome = {
  format: null,
  pieces: only(),
  end: () => Promise.resolve(),
  readRows: 0,
  readBytes: 0,
  writtenRows: 0,
  writtenBytes: 0,
  elapsedS: 0,
}

/** Null if the statement can't be streamed; it has not run then. */
async function stream(session: Session, query: Query, sql: string): Promise<Outcome | null> {
  const format = query.statement.format ?? query.format
  const wantsMore =
    query.statement.asksForMoreThanRows ||
    ['extremes', 'output_format_json_array_of_rows'].some((name) => name in query.settings)
  if (query.isHeld || wantsMore || !STREAMED.test(format)) return null
  try {
    const pieces = fetched(session, session.queryStream(sql, { format }))
    const first = await pieces.next()
    if (first.done === true) return { ...NOTHING, format }
    const end = async () => {
      await pieces.return(undefined)
    }
    return { ...NOTHING, format, pieces: followed(first.value, pieces), end }
  } catch (error) {
    if (error instanceof Error && NOT_STREAMED.test(error.message)) return null
    throw error
  }
}

/** The session is closed at the end of the stream, or when the reader stops. */
async function* fetched(
  session: Session,
  pieces: ReturnType<Session['queryStream']>,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of pieces) yield piece.raw()
  } finally {
    session.close()
  }
}

async function* followed(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  yield* rest
}

async function whole(session: Session, query: Query, sql: string): Promise<Outcome> {
  const format = query.statement.format ?? query.format
  const result = await session.queryAsync(sql, { format })
  session.close()
  const { rowsRead, bytesRead, elapsed } = result
  const read = { readRows: rowsRead, readBytes: bytesRead, elapsedS: elapsed }
  return { ...NOTHING, ...read, format, pieces: only(result.bytes()) }
}

async function* only(...pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield await Promise.resolve(piece)
}

/** SQL that applies the settings of the request, and at last makes the session read-only if requested. */
function preludeOf({ settings, parameters, database, isReadOnly }: Query): string {
  const given: Record<string, string> = { ...AS_A_SERVER, ...settings }
  const { readonly: requested = '0', ...others } = given
  const readonly = isReadOnly && requested === '0' ? '2' : requested
  const named = Object.entries(parameters).map(([name, value]) => [`param_${name}`, value] as const)
  const assignments = [...Object.entries(others), ...named].map(
    ([name, value]) => `${name} = ${quoted(value, "'")}`,
  )
  const use = database === null ? [] : [`USE ${quoted(database, '`')}`]
  return [`SET ${assignments.join(', ')}`, ...use, `SET readonly = ${quoted(readonly, "'")}`].join('; ')
}

function quoted(text: string, mark: "'" | '`'): string {
  const escaped = text.replaceAll(/[\\'`]/g, (character) => `\\${character}`)
  return `${mark}${escaped}${mark}`
}
