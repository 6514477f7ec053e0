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
  /** The server name that the client sent in TLS; null if none. */
  serverName: string | null
}

/** An endpoint of webhooks. */
export interface Endpoint {
  /** Includes a path. */
  url: string
  port: number
  /** The number of connections that were opened, and those that are still open. */
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
  /** Enables TLS. */
  certificate?: CertificateFiles
}

/** Starts an HTTP server that records its requests, and answers 200 by default. */
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
  // Only the client closes connections.
  server.keepAliveTimeout = 0
  const endpoint = await listen(server, certificate === undefined ? 'http' : 'https', listening)
  return { ...endpoint, requests }
}

/** `startEndpoint` for a suite: after each test, the endpoints that it started or added are disposed of. */
export function endpointsPerTest(): { start: typeof startEndpoint; add: (...more: Endpoint[]) => void } {
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

/** Starts a TCP server that handles its connections itself. */
export async function startTcpEndpoint(
  onConnection: (socket: Socket) => void,
  { host, scheme = 'http' }: { host?: string; scheme?: 'http' | 'https' } = {},
): Promise<Endpoint> {
  return listen(createTcp(onConnection), scheme, host === undefined ? {} : { host })
}

/** Starts a TCP server that answers each request with these bytes. Requests must arrive in one packet. */
export function startRawEndpoint(...pieces: readonly (string | Buffer)[]): Promise<Endpoint> {
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
    // A client may reset the connection at any time.
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
    // The client disconnected: keep what has arrived.
    return `${Buffer.concat(chunks).toString()} (cut)`
  }
  return Buffer.concat(chunks).toString()
}

async function pemOf({ cert, key }: CertificateFiles): Promise<{ cert: Buffer; key: Buffer }> {
  return { cert: await readFile(cert), key: await readFile(key) }
}
