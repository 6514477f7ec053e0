import {
  type ClickHouseClient,
  type ClickHouseClientConfigOptions,
  ClickHouseLogLevel,
  createClient,
} from '@clickhouse/client'

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
