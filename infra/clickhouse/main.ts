import { readFileSync } from 'node:fs'
import { LOOPBACK } from '../servers/ports.js'
import { Engine } from './engine.js'
import { closeFront, createFront } from './front.js'

/*
 * A ClickHouse for developing and testing, where none can be had: chDB, which is ClickHouse in a process, behind
 * ClickHouse's HTTP interface. What it is not: there is one user, who may read and write all that this process may,
 * files of the machine among it; no native protocol, no sessions, no external tables, no progress, no cancelling of
 * what runs; no replicas, no cluster. It listens on the loopback alone. Only one process may have its folder open.
 *
 * Its one argument is a JSON file: folder, port, user, password, mostBodyBytes, tls (paths of cert and key, or null).
 */

export interface Configuration {
  folder: string
  port: number
  user: string
  password: string
  mostBodyBytes: number
  /** PEM files. */
  tls: { cert: string; key: string } | null
}

const ENDS_WITHIN_MS = 10_000

const { folder, port, user, password, mostBodyBytes, tls } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
) as Configuration
const engine = await Engine.open(folder)
const server = createFront({
  engine,
  access: { user, password },
  mostBodyBytes,
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
