import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { startEndpoint, startSaying, startTcpEndpoint, type Endpoint } from '#test/harness/endpoint.js'
import { attempt, openSender, post } from '#test/harness/sender.js'
import { until } from '#test/harness/until.js'

const endpoints: Endpoint[] = []

/** Ends after the test. */
async function here<Started extends Endpoint>(starting: Promise<Started>): Promise<Started> {
  const endpoint = await starting
  endpoints.push(endpoint)
  return endpoint
}

afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.dispose()))
})

/** Says something again and again, as long as it is taken. */
function drip(socket: Socket, piece: string | Buffer, everyMs = 5): void {
  const timer = setInterval(() => socket.write(piece), everyMs)
  socket.on('close', () => clearInterval(timer))
}

/** As fast as it is taken; `said.bytes` counts what was. */
function flood(socket: Socket, piece: Buffer, mostBytes: number, said: { bytes: number }): void {
  const more = () => {
    while (said.bytes < mostBytes && !socket.destroyed) {
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

describe('an endpoint that is slow', () => {
  it('to take a connection is given up', async () => {
    const { port, dispose } = await startDeaf()
    try {
      const outcome = await attempt(`http://127.0.0.1:${port}/`, { bounds: { connectMs: 200 } })
      const detail = 'the host did not take the connection in time'
      expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout', detail })
    } finally {
      dispose()
    }
  })

  it('in the handshake of TLS is given up', async () => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.resume(), { scheme: 'https' }))
    const outcome = await attempt(endpoint.url, { bounds: { tlsMs: 200 } })
    const detail = 'the handshake of TLS was not over in time'
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout', detail })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })

  it.each<[string, (socket: Socket) => void]>([
    ['says nothing', (socket) => socket.resume()],
    ['drips its status', (socket) => socket.resume().write('HTTP/1.1 200 ') && drip(socket, 'O')],
    ['drips a header', (socket) => socket.resume().write(`${OK}x: `) && drip(socket, 'y')],
    ['drips headers', (socket) => socket.resume().write(OK) && drip(socket, 'x: y\r\n')],
    ['says 103 for ever', (socket) => drip(socket.resume(), 'HTTP/1.1 103 Early Hints\r\n\r\n')],
  ])('and %s is given up, with its connection', async (_what, onConnection) => {
    const endpoint = await here(startTcpEndpoint(onConnection))
    const outcome = await attempt(endpoint.url, { timeoutMs: 300 })
    const detail = 'the answer did not come in time'
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout', detail, status: null })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })

  it('and takes nothing is given up, with its connection', async () => {
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

  it.each(['says no more of it', 'drips it'])('with its content has answered, though it %s', async (what) => {
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
  })
})

describe('an endpoint that says too much', () => {
  it('is not waited for', async () => {
    const more = 'x'.repeat(65 * 1_024)
    const endpoint = await here(startSaying(`${OK}content-length: ${MIB}\r\n\r\n${more}`))
    const outcome = await attempt(endpoint.url, { timeoutMs: HOURS_MS, bounds: { contentMs: HOURS_MS } })
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
  })

  it('is cut off in its content, a gigabyte of it, and has answered', async () => {
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
    // What the kernel's buffers took.
    expect(said.bytes).toBeLessThan(64 * MIB)
  })

  const header = 'the answer has more header than is read'
  const around = 'the answer has more around its content than is read'
  it.each([
    ['a header without an end', `${OK}x: `, 'y'.repeat(1_024), header],
    ['headers without an end', OK, `x: ${'y'.repeat(1_000)}\r\n`, header],
    ['a status line without an end', 'HTTP/1.1 200 ', 'O'.repeat(1_024), around],
    [
      'interim answers without an end',
      '',
      'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(50),
      around,
    ],
  ])('as %s is cut off', async (_what, first, piece, detail) => {
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
    ['an extension of a chunk', `5;${'x'.repeat(1_000)}`, 'x'.repeat(1_024)],
    ['trailers', '0\r\n', `x: ${'y'.repeat(1_000)}\r\n`],
  ])('behind its headers, as %s without an end, has answered', async (_what, first, piece) => {
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

  it('in many answers on one connection has said each', async () => {
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

describe('an endpoint that speaks no HTTP', () => {
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
  ])('but %j has failed', async (said) => {
    const endpoint = await here(startSaying(said))
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason: 'protocol' })
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })
})

describe('an endpoint that ends the connection', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['at once', (socket) => socket.destroy()],
    ['after the request', (socket) => socket.once('data', () => socket.end())],
    ['by a reset after the request', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['within the headers', (socket) => socket.once('data', () => socket.end(`${OK}content-len`))],
    ['after an interim answer', (socket) => socket.once('data', () => socket.end('HTTP/1.1 103 X\r\n\r\n'))],
  ])('%s has failed', async (_when, onConnection) => {
    const endpoint = await here(startTcpEndpoint(onConnection))
    const detail = 'the connection ended before the answer'
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason: 'reset', detail })
    // It was no connection that had stood before.
    expect(endpoint.connections.opened).toBe(1)
  })

  it('by a reset, at once, has failed', async () => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.resetAndDestroy()))
    // It may come before the connection is known to be open.
    const reason = expect.stringMatching(/^(connect|reset)$/) as string
    expect(await attempt(endpoint.url)).toMatchObject({ kind: 'failed', reason })
  })

  it('within its content has answered', async () => {
    const endpoint = await here(
      startTcpEndpoint((socket) => {
        socket.once('data', () => socket.end(`HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nsome`))
      }),
    )
    const outcome = await attempt(endpoint.url)
    expect(outcome).toMatchObject({ kind: 'answered', status: 500, answer: Buffer.from('some') })
  })

  it('is not there', async () => {
    const gone = await startEndpoint()
    await gone.dispose()
    const detail = 'the connection was refused'
    expect(await attempt(gone.url)).toMatchObject({ kind: 'failed', reason: 'connect', detail })
  })
})

/** A port that takes no connection: those that wait for being taken fill its queue. */
async function startDeaf(): Promise<{ port: number; dispose: () => void }> {
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
