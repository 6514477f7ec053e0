import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import {
  createServer as createHttp,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttps } from 'node:https'
import { createServer as createTcp, type AddressInfo, type Server, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { CertificateFiles } from './certificates.js'

export interface ReceivedRequest {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
  /** Whom the client asked for over TLS, where it did by name. */
  serverName: string | null
}

/** Where webhooks are sent to. */
export interface Endpoint {
  /** With a path. */
  url: string
  port: number
  /** That have been opened, and those of them that are still open. */
  connections: { opened: number; open: Set<Socket> }
  dispose(): Promise<void>
}

export interface HttpEndpoint extends Endpoint {
  requests: ReceivedRequest[]
}

type Answer = (response: ServerResponse, request: ReceivedRequest) => void

interface Listening {
  host?: string
  /** 0 for a free one. */
  port?: number
  /** Over TLS with that. */
  certificate?: CertificateFiles
}

/** An HTTP server that keeps what it was sent, and says 200 unless told otherwise. */
export async function startEndpoint(
  answer: Answer = (response) => response.end('ok'),
  { certificate, ...listening }: Listening = {},
): Promise<HttpEndpoint> {
  const requests: ReceivedRequest[] = []
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    void bodyOf(request).then((body) => {
      const { method = '', url = '', headers } = request
      const serverName = request.socket instanceof TLSSocket ? request.socket.servername : null
      const received = { method, url, headers, body, serverName: serverName === false ? null : serverName }
      requests.push(received)
      answer(response, received)
    })
  }
  const server =
    certificate === undefined ? createHttp(listener) : createHttps(await pemOf(certificate), listener)
  // Only the client ends connections.
  server.keepAliveTimeout = 0
  const endpoint = await listen(server, certificate === undefined ? 'http' : 'https', listening)
  return { ...endpoint, requests }
}

/** As `startEndpoint`, of a suite: each is gone after the test that started it, with those that are handed in. */
export function endpointsOfTests(): { start: typeof startEndpoint; add: (...more: Endpoint[]) => void } {
  const endpoints: Endpoint[] = []
  afterEach(async () => {
    await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.dispose()))
  })
  return {
    async start(...wanted) {
      const endpoint = await startEndpoint(...wanted)
      endpoints.push(endpoint)
      return endpoint
    },
    add: (...more) => void endpoints.push(...more),
  }
}

/** One that does with a connection whatever it likes. */
export async function startTcpEndpoint(
  onConnection: (socket: Socket) => void,
  { host, scheme = 'http' }: { host?: string; scheme?: 'http' | 'https' } = {},
): Promise<Endpoint> {
  return listen(createTcp(onConnection), scheme, host === undefined ? {} : { host })
}

/** One that says these bytes to each request, which has to come in one piece. */
export function startSaying(...pieces: readonly (string | Buffer)[]): Promise<Endpoint> {
  return startTcpEndpoint((socket) => {
    socket.once('data', () => {
      for (const piece of pieces) socket.write(piece)
    })
  })
}

async function listen(
  server: Server,
  scheme: string,
  { host = '127.0.0.1', port = 0 }: Listening,
): Promise<Endpoint> {
  const connections = { opened: 0, open: new Set<Socket>() }
  server.on('connection', (socket) => {
    connections.opened += 1
    connections.open.add(socket)
    // A client may cut it at any time.
    socket.on('error', () => socket.destroy()).on('close', () => connections.open.delete(socket))
  })
  server.listen(port, host)
  await once(server, 'listening')
  const taken = (server.address() as AddressInfo).port
  return {
    url: `${scheme}://${host.includes(':') ? `[${host}]` : host}:${taken}/hook`,
    port: taken,
    connections,
    async dispose() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of connections.open) socket.destroy()
      await closed
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    // Cut: what came of it is kept.
    return `${Buffer.concat(chunks).toString()} (cut)`
  }
  return Buffer.concat(chunks).toString()
}

async function pemOf({ cert, key }: CertificateFiles): Promise<{ cert: Buffer; key: Buffer }> {
  return { cert: await readFile(cert), key: await readFile(key) }
}
