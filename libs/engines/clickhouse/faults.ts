import { messageOf } from '#libs/runtime/fault/message-of.js'
import { tlsFault } from '#libs/runtime/tls/tls-fault.js'
import { UsageUnavailableError } from '#libs/ports/usage/usage-store.js'

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
