import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export const LOOPBACK = '127.0.0.1'

/*
 * Below the ephemeral ports of operating systems (from 32768 on Linux), so that no outgoing connection takes the port of
 * a server that is restarting. The bus of a Redis Cluster listens 10,000 above.
 */
const [LEAST, MOST] = [12_000, 22_000]
const CLUSTER_BUS = 10_000
const MAX_TRIES = 500
/* Each of Jest's workers uses its own slice of ports, because a server of another worker may be restarting. */
const SLICES = 5
const SLICE = Number(process.env['JEST_WORKER_ID'] ?? 0) % SLICES

const given = new Set<number>()

/** Free loopback ports, which are also free 10,000 above. Never returns a port twice in one process. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tries = 0; ports.length < count; tries += 1) {
    if (tries === MAX_TRIES) throw new Error(`found no ${count} free ports in ${MAX_TRIES} attempts`)
    const port = LEAST + SLICE + SLICES * randomInt((MOST - LEAST) / SLICES)
    if (given.has(port)) continue
    given.add(port)
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS))) ports.push(port)
  }
  return ports
}

/** One port of {@link freePorts}. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

/** Whether a server could listen on this loopback port now. */
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
 * Sends bytes to a loopback port. Resolves with the first chunk of the answer; null if the port is closed, the
 * connection is closed without an answer, or there is none in time.
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
