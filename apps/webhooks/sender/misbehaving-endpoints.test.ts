import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { startEndpoint, startTcpEndpoint, type Endpoint, startRawEndpoint } from '#test/harness/endpoint.js'
import { attempt, openSender, post } from '#test/harness/sender.js'
import { until } from '#test/harness/until.js'

const endpoints: Endpoint[] = []

/** Disposes of the endpoint after the test. */
async function here<Started extends Endpoint>(starting: Promise<Started>): Promise<Started> {
  const endpoint = await starting
  endpoints.push(endpoint)
  return endpoint
}

afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.dispose()))
})

/** Writes a piece repeatedly until the socket closes. */
function drip(socket: Socket, piece: string | Buffer, everyMs = 5): void {
  const timer = setInterval(() => socket.write(piece), everyMs)
  socket.on('close', () => clearInterval(timer))
}

/** Writes as fast as the client reads. `said.bytes` counts the bytes written. */
function flood(socket: Socket, piece: Buffer, maxBytes: number, said: { bytes: number }): void {
  const more = () => {
    while (said.bytes < maxBytes && !socket.destroyed) {
      said.bytes += piece.length
      if (!socket.write(piece)) {
        socket.once('drain', more)
        return
      }
    }
  }
  more()
}

const MIB = 1024 * 1024
/** Longer than any test. */
const HOURS_MS = 10_000_000
const OK = 'HTTP/1.1 200 OK\r\n'

describe('an attempt at a slow endpoint', () => {
  it('times out if the connection is not accepted', async () => {
    const { port, dispose } = await startUnresponsive()
    try {
      const outcome = await attempt(`http://127.0.0.1:${port}/`, { bounds: { connectMs: 200 } })
      const detail = 'the host did not accept the connection in time'
      expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout', detail })
    } finally {
      dispose()
    }
  })

  it('times out in the TLS handshake', async () => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.resume(), { scheme: 'https' }))
    const outcome = await attempt(endpoint.url, { bounds: { tlsMs: 200 } })
    const detail = 'the TLS handshake did not finish in time'
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout', detail })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })

  it.each<[string, (socket: Socket) => void]>([
    ['sends nothing', (socket) => socket.resume()],
    ['drips its status', (socket) => socket.resume().write('HTTP/1.1 200 ') && drip(socket, 'O')],
    ['drips a header', (socket) => socket.resume().write(`${OK}x: `) && drip(socket, 'y')],
    ['drips headers', (socket) => socket.resume().write(OK) && drip(socket, 'x: y\r\n')],
    ['keeps sending 103', (socket) => drip(socket.resume(), 'HTTP/1.1 103 Early Hints\r\n\r\n')],
  ])('times out and closes its connection if the endpoint %s', async (_what, onConnection) => {
    const endpoint = await here(startTcpEndpoint(onConnection))
    const outcome = await attempt(endpoint.url, { timeoutMs: 1_000 })
    const detail = 'the response did not arrive in time'
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout', detail, status: null })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })

  it('times out and closes its connection if the endpoint does not read the request', async () => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.pause()))
    const body = Buffer.from(JSON.stringify('x'.repeat(16 * MIB)))
    expect(await attempt(endpoint.url, { timeoutMs: 1_500 }, { body })).toMatchObject({ reason: 'timeout' })
    let takenBytes = 0
    for (const socket of endpoint.connections.open) {
      socket.on('data', (chunk: Buffer) => (takenBytes += chunk.length)).resume()
    }
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
    expect(takenBytes).toBeLessThan(16 * MIB)
  })

  it.each(['sends no more', 'drips it'])(
    'succeeds once the headers are read, even if the content %s',
    async (what) => {
      const endpoint = await here(
        startTcpEndpoint((socket) => {
          socket.resume().write(`${OK}transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n`)
          if (what === 'drips it') drip(socket, '1\r\n.\r\n')
        }),
      )
      const outcome = await attempt(endpoint.url, { timeoutMs: HOURS_MS, bounds: { contentMs: 100 } })
      expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
      expect(outcome.kind === 'answered' && outcome.answer.toString()).toMatch(/^first\.*$/)
      await until('the connection to be closed', () => endpoint.connections.open.size === 0)
    },
  )
})

describe('an attempt with a response that is too large', () => {
  it('does not wait for the rest', async () => {
    const more = 'x'.repeat(65 * 1_024)
    const endpoint = await here(startRawEndpoint(`${OK}content-length: ${MIB}\r\n\r\n${more}`))
    const outcome = await attempt(endpoint.url, { timeoutMs: HOURS_MS, bounds: { contentMs: HOURS_MS } })
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
  })

  it('succeeds and closes the connection within a gigabyte of content', async () => {
    const said = { bytes: 0 }
    const endpoint = await here(
      startTcpEndpoint((socket) => {
        socket.once('data', () => {
          socket.write(`${OK}content-length: ${1024 * MIB}\r\n\r\n`)
          flood(socket, Buffer.alloc(64 * 1024, '.'), 1024 * MIB, said)
        })
      }),
    )
    const outcome = await attempt(endpoint.url)
    expect(outcome).toMatchObject({ kind: 'answered', status: 200, answer: Buffer.alloc(1_024, '.') })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
    // Only what the kernel buffered was written.
    expect(said.bytes).toBeLessThan(64 * MIB)
  })

  const header = 'the response headers are too large'
  const around = 'the response is too large outside its content'
  it.each([
    ['an endless header', `${OK}x: `, 'y'.repeat(1_024), header],
    ['endless headers', OK, `x: ${'y'.repeat(1_000)}\r\n`, header],
    ['an endless status line', 'HTTP/1.1 200 ', 'O'.repeat(1_024), around],
    ['endless interim responses', '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(50), around],
  ])('fails with %s', async (_what, first, piece, detail) => {
    const said = { bytes: 0 }
    const endpoint = await here(
      startTcpEndpoint((socket) => {
        socket.once('data', () => {
          socket.write(first)
          flood(socket, Buffer.from(piece), 1024 * MIB, said)
        })
      }),
    )
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason: 'protocol', detail })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
    expect(said.bytes).toBeLessThan(64 * MIB)
  })

  it.each([
    ['an endless chunk extension', `5;${'x'.repeat(1_000)}`, 'x'.repeat(1_024)],
    ['endless trailers', '0\r\n', `x: ${'y'.repeat(1_000)}\r\n`],
  ])('succeeds with %s after the headers', async (_what, first, piece) => {
    const said = { bytes: 0 }
    const endpoint = await here(
      startTcpEndpoint((socket) => {
        socket.once('data', () => {
          socket.write(`${OK}transfer-encoding: chunked\r\n\r\n${first}`)
          flood(socket, Buffer.from(piece), 1024 * MIB, said)
        })
      }),
    )
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'answered', status: 200 })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
    expect(said.bytes).toBeLessThan(64 * MIB)
  })

  it('counts each response on a connection separately', async () => {
    const content = 'x'.repeat(60 * 1_024)
    const endpoint = await here(startEndpoint((response) => response.end(content)))
    const sender = openSender()
    for (let times = 0; times < 50; times += 1) {
      expect(await sender.post(post(endpoint.url))).toMatchObject({ kind: 'answered', status: 200 })
    }
    expect(endpoint.connections.opened).toBeLessThanOrEqual(2)
    await sender.close()
  })
})

describe('an attempt with an invalid response', () => {
  it.each([
    '220 mail.example ESMTP\r\n',
    '-ERR unknown command\r\n',
    '\x00\x01\x02',
    'HTTP/2 200\r\n\r\n',
    'HTTP/1.1 2000 OK\r\n\r\n',
    `${OK}content-length: 1\r\ncontent-length: 2\r\n\r\n`,
    `${OK}content-length: -1\r\n\r\n`,
    `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n`,
    `${OK}a b\r\n\r\n`,
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 099 Early\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 600 Beyond\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 999 Beyond\r\ncontent-length: 0\r\n\r\n',
  ])('fails with %j', async (said) => {
    const endpoint = await here(startRawEndpoint(said))
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason: 'protocol' })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })
})

describe('an attempt whose connection ends', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['at once', (socket) => socket.destroy()],
    ['after the request', (socket) => socket.once('data', () => socket.end())],
    ['by a reset after the request', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['in the headers', (socket) => socket.once('data', () => socket.end(`${OK}content-len`))],
    [
      'after an interim response',
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 103 X\r\n\r\n')),
    ],
  ])('%s fails', async (_when, onConnection) => {
    const endpoint = await here(startTcpEndpoint(onConnection))
    const detail = 'the connection ended before the response'
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason: 'reset', detail })
    // The connection was new, so the attempt is not repeated.
    expect(endpoint.connections.opened).toBe(1)
  })

  it('by a reset at once fails', async () => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.resetAndDestroy()))
    // The reset may come before Node reports the connection as open.
    const reason = expect.stringMatching(/^(connect|reset)$/) as string
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason })
  })

  it('in the content succeeds', async () => {
    const endpoint = await here(
      startTcpEndpoint((socket) => {
        socket.once('data', () => socket.end(`HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nsome`))
      }),
    )
    const outcome = await attempt(endpoint.url)
    expect(outcome).toMatchObject({ kind: 'answered', status: 500, answer: Buffer.from('some') })
  })

  it('before it is established fails', async () => {
    const gone = await startEndpoint()
    await gone.dispose()
    const detail = 'the connection was refused'
    expect(await attempt(gone.url)).toMatchObject({ kind: 'failed', reason: 'connect', detail })
  })
})

/** A port that accepts no connection: its backlog is full. */
async function startUnresponsive(): Promise<{ port: number; dispose: () => void }> {
  const program = `
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      require('node:fs').writeSync(1, String(server.address().port))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const child: ChildProcess = spawn(process.execPath, ['-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(child.stdout ?? child, 'data')) as [Buffer]
  const port = Number(said.toString())
  const waiting = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  await until('a full queue', () => waiting.filter(({ pending }) => !pending).length === 2)
  return {
    port,
    dispose() {
      for (const socket of waiting) socket.destroy()
      child.kill('SIGKILL')
    },
  }
}
