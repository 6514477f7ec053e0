import { parseArgs } from 'node:util'
import { listed, startServers, stopServers, type Kind } from './development-servers.js'

/* `npm run kafka:start`, `kafka:stop`, and the same for redis and clickhouse: servers in the background for development. */

const USAGE = `npm run <kafka|redis>:start [-- --nodes 3] [-- --port <first port>]
npm run clickhouse:start [-- --port <port>]
npm run <kafka|redis|clickhouse>:stop
`

try {
  await run(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function run(args: string[]): Promise<void> {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      nodes: { type: 'string', default: '1' },
      port: { type: 'string' },
      folder: { type: 'string', default: '.servers' },
    },
  })
  const [action, kind] = positionals
  if (kind !== 'kafka' && kind !== 'redis' && kind !== 'clickhouse') throw new Error(USAGE)
  if (action === 'stop') return stop(kind, values.folder)
  if (action !== 'start' || (values.nodes !== '1' && values.nodes !== '3')) throw new Error(USAGE)
  if (kind === 'clickhouse' && values.nodes !== '1') throw new Error(USAGE)
  const port = values.port === undefined ? null : portFrom(values.port)
  const nodes = values.nodes === '3' ? 3 : 1
  const { folder, settings } = await startServers({ kind, nodes, port, root: values.folder, say })
  say(`${settings.join(' ')}\nData and log are in ${folder}; npm run ${kind}:stop ends it.`)
}

async function stop(kind: Kind, root: string): Promise<void> {
  const ended = await stopServers(kind, root)
  say(ended.length === 0 ? `No ${kind} was started here.` : `Ended ${listed(ended)}.`)
}

/** Leaves space for the ports of three nodes, and for those 10,000 above. */
function portFrom(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 55_533) throw new Error(`--port must be from 1 to 55533, not ${text}`)
  return port
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
