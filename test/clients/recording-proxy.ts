import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/** What happens to the next requests that match, instead of an answer from Mayfly. */
interface Fault {
  method: string
  /** An expression that the path matches. */
  path: string
  times: number
  /** Answers with this status, and a problem of Mayfly. */
  status?: 429 | 503
  retryAfter?: number | string
  /** Breaks the connection. */
  reset?: boolean
  /** Forwards the request, and breaks the connection instead of answering. */
  loseAnswer?: boolean
  /** Never answers. */
  hang?: boolean
  /** Breaks the connection after this text of the answer. */
  cutAfter?: string
  /** Answers as another server would. */
  answer?: { status: number; headers?: Record<string, string>; body?: string }
}

const CODES = { 429: 'rate-limited', 503: 'shutting-down' }

/** Forwards requests to Mayfly, remembers them, and injects the faults that scenarios ask for at `/__faults`. */
export class RecordingProxy implements AsyncDisposable {
  /** Method and path of each request, without the query. */
  readonly requests = new Set<string>()
  private faults: Fault[] = []

  private constructor(
    private readonly target: string,
    private readonly server: Server,
  ) {
    server.on('request', (incoming, outgoing) => {
      this.answer(incoming, outgoing).catch(() => incoming.socket.destroy())
    })
  }

  static async start(target: string): Promise<RecordingProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new RecordingProxy(target, server)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }

  private async answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url = '' } = incoming
    const [path = ''] = url.split('?')
    if (path === '/__webhook') return void incoming.resume().on('end', () => outgoing.end())
    if (path === '/__faults') {
      if (method === 'DELETE') this.faults = []
      else this.faults.push((await json(incoming)) as Fault)
      return void outgoing.end()
    }
    this.requests.add(`${method} ${path}`)
    const fault = this.faults.find(
      (each) => each.times > 0 && each.method === method && path.match(each.path),
    )
    if (fault === undefined) {
      this.forward(incoming, outgoing)
      return
    }
    fault.times -= 1
    if (fault.hang === true) return
    if (fault.reset === true) return void incoming.socket.destroy()
    if (fault.answer !== undefined) {
      const { status, headers, body } = fault.answer
      return void outgoing.writeHead(status, headers).end(body)
    }
    if (fault.status === undefined) this.forward(incoming, outgoing, fault)
    else refuse(outgoing, fault)
  }

  private forward(incoming: IncomingMessage, outgoing: ServerResponse, fault?: Fault): void {
    const { method, headers } = incoming
    const forwarded = request(new URL(incoming.url ?? '', this.target), { method, headers })
    const cut = () => incoming.socket.destroy()
    forwarded.on('error', cut)
    outgoing.on('close', () => forwarded.destroy())
    forwarded.on('response', (answer) => {
      if (fault?.loseAnswer === true) return void answer.resume().on('end', cut)
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
      let sent = ''
      answer.on('data', (chunk: Buffer) => {
        const text = `${sent}${chunk.toString('latin1')}`
        const { cutAfter = '' } = fault ?? {}
        const start = cutAfter === '' ? -1 : text.indexOf(cutAfter)
        if (start === -1) outgoing.write(chunk)
        else {
          answer.pause()
          outgoing.write(chunk.subarray(0, start + cutAfter.length - sent.length), cut)
        }
        sent = text
      })
      answer.on('end', () => outgoing.end())
      answer.on('error', cut)
    })
    incoming.pipe(forwarded)
  }
}

function refuse(outgoing: ServerResponse, { status = 503, retryAfter }: Fault): void {
  const problem = { type: 'about:blank', title: 'Injected', status, detail: 'Injected.', code: CODES[status] }
  outgoing.statusCode = status
  outgoing.setHeader('content-type', 'application/problem+json')
  if (retryAfter !== undefined) outgoing.setHeader('retry-after', retryAfter)
  outgoing.end(JSON.stringify({ ...problem, fix: 'Try again.', request_id: 'req_injected' }))
}
