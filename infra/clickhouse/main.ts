import { readFileSync } from 'node:fs'
import { LOOPBACK } from '../servers/ports.js'
import { Engine } from './engine.js'
import { closeFront, createFront } from './front.js'

/*
 * A ClickHouse for development and tests: chDB, which is ClickHouse in a process, with ClickHouse's HTTP interface.
 * Limitations: one user, who can read and write everything that this process can, including files; no native protocol,
 * sessions, external tables, progress or cancellation; no replicas, no cluster. It listens on loopback only. Only one
 * process may have its folder open.
 *
 * Its argument is a JSON file: folder, port, user, password, maxBodyBytes, tls (paths of cert and key, or null).
 */

export interface Configuration {
  folder: string
  port: number
  user: string
  password: string
  maxBodyBytes: number
  /** Paths of PEM files. */
  tls: { cert: string; key: string } | null
}

const ENDS_WITHIN_MS = 10_000

const { folder, port, user, password, maxBodyBytes, tls } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
) as Configuration
const engine = await Engine.open(folder)
const server = createFront({
  engine,
  access: { user, password },
  maxBodyBytes,
  tls: tls && { cert: readFileSync(tls.cert, 'utf8'), key: readFileSync(tls.key, 'utf8') },
})
server.listen(port, LOOPBACK)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void closeFront(server, ENDS_WITHIN_MS).then(() => {
      engine.close()
      process.exit()
    })
  })
}
