import {
  type ClickHouseClient,
  type ClickHouseClientConfigOptions,
  ClickHouseLogLevel,
  createClient,
} from '@clickhouse/client'
import { codeOf, messageOf } from '#libs/runtime/errors.js'
import { tlsError } from '#libs/runtime/tls/tls-error.js'
import { UsageUnavailableError } from '#libs/ports/usage/usage-store.js'

/*
 * Connects to ClickHouse: in this process (chDB), or a server over HTTP. Both use the same client and the same SQL. The
 * settings of a query are written in its text, because a session of chDB keeps settings that are passed separately.
 */

export interface ServerAddress {
  url: string
  database: string
  username: string
  password: string
  /** The authority that signed the server's certificate, as PEM; null for the system's authorities. */
  ca: string | null
}

const ANSWER_WITHIN_MS = 30_000
const MAX_CONNECTIONS = 10

/** Connects at the first request. */
export function serverClient({ url, database, username, password, ca }: ServerAddress): ClickHouseClient {
  return createClient({
    url,
    database,
    username,
    password,
    application: 'mayfly',
    // Failures are rejections, which the caller reports.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: ANSWER_WITHIN_MS,
    max_open_connections: MAX_CONNECTIONS,
    ...(ca === null ? {} : { tls: { ca_cert: Buffer.from(ca) } }),
  })
}

/** Null if chDB is not installed. It supports Linux (glibc) and macOS, on x64 and arm64. */
export async function chdbClient(path: string): Promise<ClickHouseClient | null> {
  const chdb = await import('chdb/connection').catch(() => null)
  if (chdb === null) return null
  try {
    // Its types are of a package that has since been merged into the client.
    const connection = chdb.createChdbConnection({ path }) as unknown as Connection
    return createClient({ connection, log: { level: ClickHouseLogLevel.OFF } })
  } finally {
    endAtFatalSignals()
  }
}

type Connection = NonNullable<ClickHouseClientConfigOptions['connection']>

/** Signals that mean that the process is broken, such as an invalid address or instruction. */
const FATAL_SIGNALS = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGSYS', 'SIGTRAP'] as const

/**
 * Makes the process end at once at a fatal signal, so that its supervisor can restart it. chDB installs handlers that
 * print a stack trace and then wait five minutes for a thread that exists only in a server.
 */
function endAtFatalSignals(): void {
  for (const signal of FATAL_SIGNALS) {
    const handle = () => undefined
    process.on(signal, handle)
    // Removing the last listener restores the system's default action.
    process.off(signal, handle)
  }
}

const TLS_SETTINGS = { address: 'CLICKHOUSE_URL', ca: 'CLICKHOUSE_TLS_CA', own: null } as const
const ACCESS_DENIED = '497'
const AUTHENTICATION_FAILED = '516'
const NOT_TLS = /wrong version number|packet length too long|http request/i
const HUNG_UP = /ECONNRESET|socket hang up/

/** Rejects with UsageUnavailableError if `work` fails. */
export async function orUnavailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    throw new UsageUnavailableError(`ClickHouse: ${reasonOf(cause)}`, { cause })
  }
}

/**
 * ClickHouse's code of an error; null if the error is not from ClickHouse. The code is read from any class of error,
 * because errors of chDB are of a class that the client does not export.
 */
export function errorCode(error: unknown): string | null {
  const code = codeOf(error)
  return code !== null && /^\d+$/.test(code) ? code : null
}

/** Describes an error, with the setting to check if there is one. */
function reasonOf(error: unknown): string {
  const reason = messageOf(error).trim()
  const code = errorCode(error)
  if (code === AUTHENTICATION_FAILED) {
    return 'the user or password is wrong: check CLICKHOUSE_USERNAME and CLICKHOUSE_PASSWORD'
  }
  if (code === ACCESS_DENIED) {
    return `${reason}: the user in CLICKHOUSE_USERNAME lacks a permission listed in docs/distributed.md`
  }
  if (HUNG_UP.test(reason))
    return `${reason}: has the server stopped, or does this port require TLS? Check CLICKHOUSE_URL`
  if (NOT_TLS.test(reason)) return `${reason}: does this port use TLS? Check CLICKHOUSE_URL`
  return tlsError(error, TLS_SETTINGS) ?? reason
}
