import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export const LOOPBACK = '127.0.0.1'

/*
 * Below the ports that operating systems give to outgoing connections (from 32768 on Linux), so that none of
 * those takes a server's port while the server is down for a moment. A Redis Cluster's bus listens 10,000 above.
 */
const [LEAST, MOST] = [12_000, 22_000]
const CLUSTER_BUS = 10_000
const MAX_TRIES = 500
/* Each of Jest's workers takes ports of a slice of its own: another worker's server may be down for a moment. */
const SLICES = 5
const SLICE = Number(process.env['JEST_WORKER_ID'] ?? 0) % SLICES

const given = new Set<number>()

/** Ports of the loopback that nobody listens on, nor 10,000 above them; this process is given none twice. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tries = 0; ports.length < count; tries += 1) {
    if (tries === MAX_TRIES) throw new Error(`${MAX_TRIES} ports were tried, and no ${count} are free`)
    const port = LEAST + SLICE + SLICES * randomInt((MOST - LEAST) / SLICES)
    if (given.has(port)) continue
    given.add(port)
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS))) ports.push(port)
  }
  return ports
}

/** As {@link freePorts}, one of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

/** Whether a server could listen on this port of the loopback just now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.once('error', () => resolve(false))
  server.listen({ port, host: LOOPBACK, exclusive: true }, () => resolve(true))
  const isOurs = await promise
  if (!isOurs) return false
  server.close()
  await once(server, 'close')
  return true
}

/**
 * Sends bytes to a port of the loopback and resolves with what comes first in answer; null if nobody listens,
 * the connection is closed without an answer, or none comes in time.
 */
export async function firstAnswer(port: number, bytes: string, withinMs: number): Promise<string | null> {
  const socket: Socket = connect({ port, host: LOOPBACK })
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const timer = setTimeout(() => resolve(null), withinMs)
  socket
    .once('connect', () => socket.write(bytes))
    .once('data', (data) => resolve(data.toString('latin1')))
    .once('error', () => resolve(null))
    .once('close', () => resolve(null))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}
