import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { readBody } from './compression.js'
import type { Query } from './engine.js'
import { badArguments, ClickHouseException, notImplemented } from './exception.js'
import { readStatement } from './statement.js'

export interface Access {
  user: string
  /** Empty for none. */
  password: string
}

/** Parameters of ClickHouse's HTTP interface, which the engine does not know. */
const OF_HTTP =
  /^(query|query_id|database|default_format|user|password|quota_key|wait_end_of_query|buffer_size|enable_http_compression|http_\w+|send_progress_in_http_headers|close_session|session_timeout|session_check)$/
/** Parameters that are refused, because they are not implemented. */
const NOT_IMPLEMENTED: Readonly<Record<string, string>> = {
  session_id: 'Sessions over HTTP are not kept: give settings and parameters with each request.',
  role: 'There is one user, without roles.',
  compress: 'Blocks compressed by ClickHouse are not made: use enable_http_compression.',
  decompress: 'Blocks compressed by ClickHouse are not read: use Content-Encoding.',
}
const NAME = /^\w+$/

/** Throws if the request does not have the credentials of the user. */
export function checkCredentials(request: IncomingMessage, url: URL, access: Access): void {
  const basic = /^Basic (.+)$/i.exec(request.headers.authorization ?? '')?.[1]
  const pair = basic === undefined ? null : Buffer.from(basic, 'base64').toString()
  const fromBasic = pair === null ? [] : [pair.split(':', 1)[0] ?? '', pair.slice(pair.indexOf(':') + 1)]
  const [header, key] = [request.headers['x-clickhouse-user'], request.headers['x-clickhouse-key']]
  const user = header ?? fromBasic[0] ?? url.searchParams.get('user') ?? 'default'
  const password = key ?? fromBasic[1] ?? url.searchParams.get('password') ?? ''
  if (isSame(String(user), access.user) && isSame(String(password), access.password)) return
  throw new ClickHouseException(
    516,
    'AUTHENTICATION_FAILED',
    `${String(user)}: Authentication failed: password is incorrect, or there is no user with such name.`,
  )
}

/** Reads the query of a request, including its whole body. */
export async function readQuery(request: IncomingMessage, url: URL, maxBytes: number): Promise<Query> {
  const given = [...url.searchParams]
  if (/^multipart\/form-data/i.test(request.headers['content-type'] ?? ''))
    throw notImplemented('Forms are not read: write parameters in the URL.')
  const body = await readBody(request, maxBytes)
  const values = new Map(given)
  for (const [name, why] of Object.entries(NOT_IMPLEMENTED)) {
    if (!['', '0', undefined].includes(values.get(name))) throw notImplemented(`${name}: ${why}`)
  }
  const settings = given.filter(
    ([name]) => !OF_HTTP.test(name) && !/^param_/.test(name) && !(name in NOT_IMPLEMENTED),
  )
  const unknown = settings.find(([name]) => !NAME.test(name))
  if (unknown !== undefined)
    throw new ClickHouseException(115, 'UNKNOWN_SETTING', `Unknown setting '${unknown[0]}'.`)
  return {
    ...statementOf(values.get('query') ?? '', body),
    settings: Object.fromEntries(settings),
    parameters: parametersOf(given),
    database: nonEmpty(values.get('database') ?? request.headers['x-clickhouse-database']),
    format:
      nonEmpty(values.get('default_format') ?? request.headers['x-clickhouse-format']) ?? 'TabSeparated',
    isReadOnly: request.method === 'GET',
    isHeld: values.get('wait_end_of_query') === '1',
  }
}

/** The statement in the URL precedes the body, which may have the rest of it, the data of an INSERT, or both. */
function statementOf(inUrl: string, body: Buffer): Pick<Query, 'statement' | 'sql' | 'data'> {
  const text = Buffer.concat([Buffer.from(inUrl === '' ? '' : `${inUrl}\n`), body])
  // Data may be binary: in latin1 every byte is a character.
  const statement = readStatement(text.toString('latin1'))
  const { insert } = statement
  if (insert === null) return { statement, sql: text.toString(), data: null }
  if (insert.isByQuery) throw notImplemented('INSERT from input() is not taken: insert into a table.')
  const [before, between] = [
    text.subarray(0, insert.sourceAt),
    text.subarray(insert.sourceAt, insert.formatAt),
  ]
  const sql = (source: string) =>
    `${String(before)} FROM INFILE ${source} ${String(between)} FORMAT ${insert.format}`
  return { statement, sql, data: text.subarray(insert.dataAt) }
}

function parametersOf(given: readonly (readonly [string, string])[]): Record<string, string> {
  const parameters = given.flatMap(([name, value]) => {
    if (!name.startsWith('param_')) return []
    const bare = name.slice('param_'.length)
    if (!NAME.test(bare)) throw badArguments(`${name} is no name of a query parameter.`)
    return [[bare, value] as const]
  })
  return Object.fromEntries(parameters)
}

function nonEmpty(value: string | string[] | undefined): string | null {
  return value === undefined || value === '' ? null : String(value)
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
