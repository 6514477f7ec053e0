import { createClient, type ClickHouseClient, type ClickHouseClientConfigOptions } from '@clickhouse/client'

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
const MOST_CONNECTIONS = 10

/** On a database that is made where it is not there. Rejects where the server can't be reached, or lets this user not in. */
export async function openServer(address: ServerAddress): Promise<ClickHouseClient> {
  const first = serverClient(address, 'default')
  try {
    await first.command({ query: `CREATE DATABASE IF NOT EXISTS ${address.database}` })
  } finally {
    await first.close()
  }
  return serverClient(address, address.database)
}

function serverClient({ url, username, password, ca }: ServerAddress, database: string): ClickHouseClient {
  return createClient({
    url,
    database,
    username,
    password,
    application: 'mayfly',
    request_timeout: ANSWER_WITHIN_MS,
    max_open_connections: MOST_CONNECTIONS,
    ...(ca === null ? {} : { tls: { ca_cert: Buffer.from(ca) } }),
  })
}

/** Null where chDB's library is not there: it comes for Linux (glibc) and macOS, on x64 and arm64. */
export async function openChdb(path: string): Promise<ClickHouseClient | null> {
  const chdb = await import('chdb/connection').catch(() => null)
  if (chdb === null) return null
  // Its types are those of a package that the client has since taken in.
  const connection = chdb.createChdbConnection({ path }) as unknown as Connection
  const client = createClient({ connection })
  try {
    await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${CHDB_DATABASE}` })
    await client.command({ query: `USE ${CHDB_DATABASE}` })
    return client
  } catch (error) {
    await client.close()
    throw error
  }
}

type Connection = NonNullable<ClickHouseClientConfigOptions['connection']>

const CHDB_DATABASE = 'mayfly'
