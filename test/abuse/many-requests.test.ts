import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { accountOn, issueKey, openAccount } from '#test/harness/accounts.js'
import { call, createInbox, send, type InboxJson, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { httpPort } from '#test/harness/wire.js'
import { attackBeside, IS_LONG, MEMORY_SETTINGS } from './bystander.js'

/*
 * Attacks of one account on others with many requests or mails, each of which is cheap or allowed. Beside other suites, the others
 * must only be served; with `npm run test:abuse`, in the time that is promised.
 */

const SECONDS = IS_LONG ? 10 : 2
const KEYS = IS_LONG ? 30 : 5
const INBOXES = IS_LONG ? 10_000 : 1_000
const STREAMS = IS_LONG ? 1_000 : 200
const RECIPIENTS = 100
const SENDERS = 8

describe('an account with many requests', () => {
  let mayfly: Mayfly
  let attacker: Target
  let other: Target
  let sockets: Socket[]

  beforeAll(async () => {
    mayfly = await startMayfly({
      hasWebhooks: true,
      env: { ...MEMORY_SETTINGS, MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' },
    })
    attacker = await accountOn(mayfly)
    other = await accountOn(mayfly)
  })
  afterAll(() => mayfly.dispose())
  beforeEach(() => {
    sockets = []
  })

  function open(onData: (socket: Socket, text: string) => void = () => undefined): Socket {
    const socket = connect({ port: httpPort(mayfly), host: '127.0.0.1' }).setEncoding('latin1')
    socket.on('data', (text: string) => onData(socket, text))
    socket.on('error', () => socket.destroy())
    sockets.push(socket)
    return socket
  }

  function hangUp(): void {
    for (const socket of sockets) socket.destroy()
  }

  /** Keeps a number of requests open on each of some connections. Resolves with the number of answers. */
  async function flood(requests: readonly string[], connections: number, atOnce: number): Promise<number> {
    let answers = 0
    let next = 0
    const request = () => requests[(next += 1) % requests.length] ?? ''
    for (let n = 0; n < connections; n += 1) {
      const socket = open((from, text) => {
        const answered = text.split('HTTP/1.1 200').length - 1
        answers += answered
        from.write(Array.from({ length: answered }, request).join(''))
      })
      socket.write(Array.from({ length: atOnce }, request).join(''))
    }
    await pause(SECONDS * 1_000)
    // On a busy machine the first one may take longer.
    await until('an answer', () => answers > 0)
    return answers
  }

  async function attack(work: () => Promise<number>): Promise<void> {
    let answers = 0
    await attackBeside(mayfly, other, async () => (answers = await work()), hangUp)
    expect(answers).toBeGreaterThan(0)
  }

  const get = (path: string, { apiKey }: Pick<Target, 'apiKey'> = attacker) =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\n\r\n`

  it('can’t delay others with cheap requests and many keys', async () => {
    const { key } = await openAccount(mayfly)
    const admin = { ...attacker, apiKey: key?.secret ?? '' }
    const keys = await Promise.all(Array.from({ length: KEYS }, () => issueKey(admin)))
    await attack(() =>
      flood(
        keys.map(({ secret }) => get('/v1/account', { apiKey: secret })),
        40,
        8,
      ),
    )
  })

  it('can’t delay others with mails of HTML to many inboxes', async () => {
    const { status, body } = await call<InboxJson[]>(attacker, 'POST', '/v1/inboxes/bulk', {
      body: { count: RECIPIENTS },
    })
    expect(status).toBe(201)
    const to = body.map(({ address }) => address)
    const html = Array.from(
      { length: 700 },
      (_, n) => `<p>Your code is <b>${100_000 + n}</b>, item ${n}-A7K</p>`,
    )
    await attack(async () => {
      const endsAtMs = performance.now() + SECONDS * 1_000
      let mails = 0
      const sending = Array.from({ length: SENDERS }, async () => {
        do {
          await send(attacker, to, `Subject: ${mails}\r\nContent-Type: text/html\r\n\r\n${html.join('\r\n')}`)
          mails += 1
        } while (performance.now() < endsAtMs)
      })
      await Promise.all(sending)
      return mails
    })
  })

  it('can’t delay others with long lists', async () => {
    const { status } = await call(attacker, 'POST', '/v1/inboxes/bulk', { body: { count: 1_000 } })
    expect(status).toBe(201)
    await attack(() => flood([get('/v1/inboxes?limit=1000')], 20, 1))
  })

  it('can’t delay others with many inboxes that have as many labels as possible', async () => {
    const many = Array.from({ length: 15 }, (_, n) => [`label-${n}`, `${n}`.padEnd(55, 'x')] as const)
    const labels = { ...Object.fromEntries(many), run: 'many' }
    await attack(async () => {
      const bulk = (path: string, body: object) => call(attacker, 'POST', `/v1/inboxes/${path}`, { body })
      const { status } = await bulk('bulk', { count: INBOXES, labels })
      expect(status).toBe(201)
      const { body } = await bulk('bulk-delete', { label: 'run:many' })
      expect(body).toEqual({ deleted: INBOXES, remaining: 0 })
      return INBOXES
    })
  }, 300_000)

  it('can’t delay others with streams that all get the same events, or by closing them at once', async () => {
    const { id } = await createInbox(attacker)
    let events = 0
    const openStreams = async () =>
      Number(/^mayfly_open_streams (\d+)$/m.exec((await call<string>(mayfly, 'GET', '/metrics')).body)?.[1])
    await attack(async () => {
      for (let n = 0; n < STREAMS; n += 1) {
        open((_, text) => (events += text.split('event: message.received').length - 1)).write(
          get('/v1/events'),
        )
      }
      await until('the streams to be open', async () => (await openStreams()) === STREAMS)
      const mails = 2 * SECONDS
      for (let n = 0; n < mails; n += 1) {
        const body = { from: 'a@b.example', subject: 'Hello', text: 'Your code is 493201.' }
        await call(attacker, 'POST', `/v1/inboxes/${id}/messages`, { body })
        await pause(500)
      }
      await until('all events', () => events === STREAMS * mails)
      hangUp()
      await until('the streams to be closed', async () => (await openStreams()) === 0)
      return events
    })
  })
})
