import { call, createInbox, inboxWith, mail, send } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { httpPort, openWire, readAnswers } from '#test/harness/wire.js'

const KEY = 'a-key-for-the-end-to-end-suites'
const HEAD = `Host: x\r\nAuthorization: Bearer ${KEY}\r\n`

describe('a shutdown signal', () => {
  let mayfly: Mayfly
  let hasEnded = false

  beforeAll(async () => {
    mayfly = await startMayfly({ apiKey: KEY })
  })
  beforeEach(async () => {
    if (hasEnded) await restart()
  })
  afterAll(() => mayfly.dispose())

  function end(signal: NodeJS.Signals): ReturnType<Mayfly['end']> {
    hasEnded = true
    return mayfly.end(signal)
  }

  async function restart(): Promise<void> {
    mayfly = await mayfly.restart()
    hasEnded = false
  }

  it('lets requests in progress be answered, refuses new ones, and exits with 0', async () => {
    const inbox = await createInbox(mayfly)
    const body = JSON.stringify({ name: 'under way' })
    const head = `POST /v1/inboxes HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    // A request that the server has started to read, but that is not complete.
    const underWay = await openWire(httpPort(mayfly))
    underWay.write(`GET /healthz HTTP/1.1\r\n${HEAD}\r\n${head}`)
    await until('the first answer', () => readAnswers(underWay.received())[0])

    const ended = end('SIGTERM')
    await until('refusal', async () => (await refusalAt(httpPort(mayfly))) === 'ECONNREFUSED')
    // The role that receives mail may be a process of its own, and get the signal later.
    await until('mail to be refused', () =>
      send(mayfly, inbox.address, mail('too late')).then(
        () => null,
        (error: unknown) => /ECONNREFUSED|421/.test(String(error)),
      ),
    )
    underWay.write(body)
    const answer = await until('the answer', () => readAnswers(underWay.received())[1])
    expect(answer.status).toBe(201)
    expect(await ended).toBe(0)
    expect(underWay.isClosed()).toBe(true)

    const { id } = JSON.parse(answer.body) as { id: string }
    await restart()
    expect((await call(mayfly, 'GET', `/v1/inboxes/${id}`)).status).toBe(200)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('can be %s', async (signal) => {
    const { id } = await createInbox(mayfly)
    expect(await end(signal)).toBe(0)
    await restart()
    expect((await call(mayfly, 'GET', `/v1/inboxes/${id}`)).status).toBe(200)
  })

  it('answers a request on a kept connection with shutting-down, or closes the connection', async () => {
    const holding = await openWire(httpPort(mayfly))
    const kept = await openWire(httpPort(mayfly))
    const get = `GET /v1/inboxes HTTP/1.1\r\n${HEAD}\r\n`
    for (const wire of [holding, kept]) {
      wire.write(get)
      await until('the first answer', () => readAnswers(wire.received())[0])
    }
    // An incomplete request keeps this connection and the instance open for a while.
    holding.write('GET /v1/inboxes HTTP/1.1\r\n')
    const ended = end('SIGTERM')
    await until('the end of idle connections', () => kept.isClosed())
    holding.write(`${HEAD}\r\n`)
    const refused = await until(
      'an answer or the end',
      () => readAnswers(holding.received())[1] ?? (holding.isClosed() ? 'closed' : null),
    )
    if (refused !== 'closed') {
      expectProblem(refused, { status: 503, code: 'shutting-down' })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(await ended).toBe(0)
  })

  it('is not delayed forever by clients that neither send nor read', async () => {
    await inboxWith(mayfly, mail('x'))
    const beginnings = [
      '',
      'GET /v1/inb',
      `POST /v1/inboxes HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{`,
    ]
    const wires = await Promise.all(
      beginnings.map(async (beginning) => {
        const wire = await openWire(httpPort(mayfly))
        wire.write(beginning)
        return wire
      }),
    )
    expect((await call(mayfly, 'GET', '/healthz')).status).toBe(200)
    expect(await end('SIGTERM')).toBe(0)
    for (const wire of wires) wire.close()
  })
})

/** The error code of a refused connection; null if it was accepted. */
async function refusalAt(port: number): Promise<string | null> {
  try {
    const wire = await openWire(port)
    wire.close()
    return null
  } catch (error) {
    return (error as { code?: string }).code ?? null
  }
}
