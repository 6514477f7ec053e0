import { connect } from 'node:net'
import type { Target } from './client.js'
import { until } from './until.js'

/** A raw TCP connection. */
export interface Wire {
  write(bytes: string | Buffer): void
  /** Ends the sending half. */
  end(): void
  /** All bytes received so far, one character per byte. */
  received(): string
  isClosed(): boolean
  close(): void
}

const TIMEOUT_MS = 60_000

/** Resolves once connected, from a loopback address; rejects if the port is closed. */
export async function openWire(port: number, localAddress = '127.0.0.1'): Promise<Wire> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true }).setEncoding('latin1')
  let text = ''
  let isClosed = false
  socket.on('data', (more: string) => (text += more))
  socket.on('end', () => (isClosed = true))
  socket.on('close', () => (isClosed = true))
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  // An error of the connection only shows in isClosed.
  socket.on('error', () => (isClosed = true))
  return {
    write: (bytes) => void socket.write(bytes),
    end: () => void socket.end(),
    received: () => text,
    isClosed: () => isClosed,
    close: () => void socket.destroy(),
  }
}

export function httpPort({ url }: Pick<Target, 'url'>): number {
  return Number(new URL(url).port)
}

export interface WireAnswer {
  status: number
  headers: Headers
  body: string
}

/** Sends bytes to the HTTP port and reads that many complete answers. */
export async function speakHttp(
  target: Pick<Target, 'url'>,
  bytes: string | Buffer,
  {
    answers = 1,
    ends = false,
    localAddress,
  }: { answers?: number; ends?: boolean; localAddress?: string } = {},
): Promise<WireAnswer[]> {
  const wire = await openWire(httpPort(target), localAddress)
  try {
    wire.write(bytes)
    if (ends) wire.end()
    return await until(
      `${answers} answers to ${bytes.toString('latin1').slice(0, 80)}`,
      () => {
        const read = readAnswers(wire.received())
        return read.length >= answers ? read : null
      },
      TIMEOUT_MS,
    )
  } finally {
    wire.close()
  }
}

/** The complete answers in a text. Bodies must have a Content-Length. */
export function readAnswers(text: string): WireAnswer[] {
  const answers: WireAnswer[] = []
  for (let rest = text; ;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) return answers
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n')
    const headers = new Headers(lines.map((line) => splitHeader(line)))
    const bodyEnd = headEnd + 4 + Number(headers.get('content-length') ?? 0)
    if (rest.length < bodyEnd) return answers
    const body = Buffer.from(rest.slice(headEnd + 4, bodyEnd), 'latin1').toString()
    const status = Number(statusLine.split(' ')[1])
    if (status !== 100) answers.push({ status, headers, body })
    rest = rest.slice(bodyEnd)
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}
