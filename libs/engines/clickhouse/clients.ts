import {
  type ClickHouseClient,
  type ClickHouseClientConfigOptions,
  ClickHouseLogLevel,
  createClient,
} from '@clickhouse/client'
import { messageOf } from '#libs/runtime/errors.js'
import { tlsFault } from '#libs/runtime/tls/tls-fault.js'
import { UsageUnavailableError } from '#libs/ports/usage/usage-store.js'

/*
 * Two ways to the same tables, with the same client and the same SQL: chDB, which is ClickHouse in this process, and a
 * server over HTTP. Settings of a query stand in its text: a session of chDB would keep those given beside it.
 */

export interface ServerAddress {
  url: string
  database: string
  username: string
  password: string
  /** The authority that signed the server's certificate, as PEM; the system's where null. */
  ca: string | null
}

const ANSWER_WITHIN_MS = 30_000
const MAX_CONNECTIONS = 10

/** Connects once it is asked for something. */
export function serverClient({ url, database, username, password, ca }: ServerAddress): ClickHouseClient {
  return createClient({
    url,
    database,
    username,
    password,
    application: 'mayfly',
    // What it can't do it rejects with, and whoever asked tells of that.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: ANSWER_WITHIN_MS,
    max_open_connections: MAX_CONNECTIONS,
    ...(ca === null ? {} : { tls: { ca_cert: Buffer.from(ca) } }),
  })
}

/** Null if chDB's library is not there: it comes for Linux (glibc) and macOS, on x64 and arm64. */
export async function chdbClient(path: string): Promise<ClickHouseClient | null> {
  const chdb = await import('chdb/connection').catch(() => null)
  if (chdb === null) return null
  // Its types are those of a package that the client has since taken in.
  const connection = chdb.createChdbConnection({ path }) as unknown as Connection
  endAtFatalSignals()
  return createClient({ connection, log: { level: ClickHouseLogLevel.OFF } })
}

type Connection = NonNullable<ClickHouseClientConfigOptions['connection']>

/** Of a process that is broken: a faulty address or instruction, memory that is no longer sound. */
const FATAL = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGSYS', 'SIGTRAP'] as const

/**
 * Lets such a process end at once, and whoever watches over it start another one. chDB, once it is connected to, handles
 * these signals to print where it was, and waits for five minutes for a thread that a server would have for it.
 */
function endAtFatalSignals(): void {
  for (const signal of FATAL) {
    const handle = () => undefined
    process.on(signal, handle)
    // With its last listener goes every handler: the system's default is in force.
    process.off(signal, handle)
  }
}

const TLS_SETTINGS = { address: 'CLICKHOUSE_URL', ca: 'CLICKHOUSE_TLS_CA', own: null } as const
const ACCESS_DENIED = '497'
const AUTHENTICATION_FAILED = '516'
const NOT_TLS = /wrong version number|packet length too long|http request/i
const HUNG_UP = /ECONNRESET|socket hang up/

/** Whatever ClickHouse did not do: it is away, out of memory or time, or does not take what it was given. */
export async function orUnavailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    throw new UsageUnavailableError(`ClickHouse: ${whyNot(cause)}`, { cause })
  }
}

/**
 * ClickHouse's code of an error, null if ClickHouse did not answer with one. Errors of chDB are of another class than those of
 * a server, which the client does not export.
 */
export function errorCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^\d+$/.test(code) ? code : null
}

/** Names the setting to look at, where it is one. */
function whyNot(error: unknown): string {
  const reason = messageOf(error).trim()
  const code = errorCode(error)
  if (code === AUTHENTICATION_FAILED) {
    return 'it refuses the user and the password: look at CLICKHOUSE_USERNAME and CLICKHOUSE_PASSWORD'
  }
  if (code === ACCESS_DENIED) {
    return `${reason}: the user in CLICKHOUSE_USERNAME lacks a right that docs/distributed.md lists`
  }
  if (HUNG_UP.test(reason))
    return `${reason}: has it ended, or does this port want TLS? Look at CLICKHOUSE_URL`
  if (NOT_TLS.test(reason)) return `${reason}: does this port speak TLS? Look at CLICKHOUSE_URL`
  return tlsFault(error, TLS_SETTINGS) ?? reason
}
