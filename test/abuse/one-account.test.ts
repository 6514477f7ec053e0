import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { accountOn } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  messagesOf,
  send,
  type InboxJson,
  type MessageJson,
  type ProblemJson,
  type Target,
} from '#test/harness/client.js'
import { listen } from '#test/harness/event-stream.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { httpPort, openWire } from '#test/harness/wire.js'
import { attackBeside, IS_LONG, MEMORY_SETTINGS } from './bystander.js'

/*
 * Attacks of one account on others with ordinary requests. With `npm run test:abuse` they are larger, and the latency of
 * other accounts must stay as low as promised. Beside other suites, the others must only be served.
 */

const SCALE = IS_LONG ? 4 : 1
const MIB = 2 ** 20
const STALL_MS = 6_000

describe('one account', () => {
  let mayfly: Mayfly
  let attacker: Target
  let other: Target
  let controllers: AbortController[]

  beforeAll(async () => {
    const env = {
      ...MEMORY_SETTINGS,
      MAYFLY_STREAM_STALL_MS: String(STALL_MS),
      MAYFLY_MAX_STREAMS: '60',
      MAYFLY_MAX_WAITS: '4',
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
    }
    mayfly = await startMayfly({ hasWebhooks: true, env })
    other = await accountOn(mayfly)
  })
  afterAll(() => mayfly.dispose())
  // Requests that an attack leaves behind may wait for a turn of their account for a while.
  beforeEach(async () => {
    attacker = await accountOn(mayfly)
    controllers = []
  })
  afterEach(() => {
    for (const controller of controllers) controller.abort()
  })

  /** A request of the attacker. Resolves with the answer once its headers arrive; the body is not read. */
  function ask(path: string): Promise<Response> {
    const controller = new AbortController()
    controllers.push(controller)
    const headers = { authorization: `Bearer ${attacker.apiKey}` }
    return fetch(mayfly.url + path, { headers, signal: controller.signal })
  }

  function hangUp(): void {
    for (const controller of controllers.splice(0)) controller.abort()
  }

  async function underAttack(attack: () => Promise<unknown>): Promise<void> {
    await attackBeside(mayfly, other, attack, hangUp)
  }

  it('that disconnects during searches of large mail ends them all', async () => {
    const inbox = await createInbox(attacker)
    for (let n = 0; n < 10 * SCALE; n += 1) await send(attacker, inbox.address, largeMail(4 * MIB))
    await shown(attacker, inbox, 10 * SCALE)
    await underAttack(async () => {
      const asked = Array.from({ length: 100 * SCALE }, (_, n) =>
        ask(`/v1/inboxes/${inbox.id}/messages?text=absent${n}`).catch(() => null),
      )
      await pause(500)
      hangUp()
      await Promise.all(asked)
    })
    // Searches that had started have ended, because only other work is done.
    await pause(1_000)
    const cpuBefore = await cpuSecondsOf(mayfly)
    await pause(4_000)
    expect((await cpuSecondsOf(mayfly)) - cpuBefore).toBeLessThan(1.5)
  })

  it('that does not read its large answers takes little memory, and is disconnected', async () => {
    const inbox = await createInbox(attacker)
    await send(attacker, inbox.address, largeMail(20 * MIB))
    const [message] = await messagesOf(attacker, inbox.id, 1)
    const path = `/v1/inboxes/${inbox.id}/messages/${message?.id}/raw`
    const answers: (Response | null)[] = []
    await underAttack(async () => {
      const asked = Array.from({ length: 40 * SCALE }, () =>
        ask(path).then(
          (answer) => answers.push(answer),
          () => null,
        ),
      )
      const cutOff = /^mayfly_http_request_seconds_count\{.*\/raw",status="499"\} [1-9]/m
      await until('a client to be disconnected', async () =>
        cutOff.test((await call<string>(mayfly, 'GET', '/metrics')).body),
      )
      await Promise.race([Promise.all(asked), pause(1_000)])
      expect(answers.length).toBeGreaterThan(0)
    })
    const whole = await call<string>(attacker, 'GET', path)
    expect(whole).toMatchObject({ status: 200 })
    expect(whole.body.length).toBeGreaterThan(20 * MIB)
  })

  it('that requests many large attachments does not block those of others', async () => {
    const [large, small] = [await createInbox(attacker), await createInbox(other)]
    await send(attacker, large.address, withAttachment(10 * MIB))
    await send(other, small.address, withAttachment(1_000))
    const [path, smallPath] = await Promise.all([attachmentOf(attacker, large), attachmentOf(other, small)])
    const count = 100 * SCALE
    let answered = 0
    await underAttack(async () => {
      const asked = Array.from({ length: count }, () =>
        ask(path)
          .then((answer) => answer.arrayBuffer())
          .then(
            () => (answered += 1),
            () => null,
          ),
      )
      await until('the first attachment', () => answered > 0)
      const before = answered
      const answer = await call<string>(other, 'GET', smallPath)
      expect(answer.status).toBe(200)
      expect(answered - before).toBeLessThan(count / 4)
      hangUp()
      await Promise.all(asked)
    })
  })

  it('with many streams that send a large mail delays no other account', async () => {
    const inbox = await createInbox(attacker)
    const path = `/v1/inboxes/${inbox.id}/events`
    const streams = await Promise.all(Array.from({ length: 50 }, () => listen(attacker, path)))
    try {
      await underAttack(async () => {
        await send(attacker, inbox.address, largeMail(8 * MIB, 'text/html'))
        await Promise.all(streams.map((stream) => stream.count(1)))
      })
    } finally {
      for (const stream of streams) stream.close()
    }
  })

  it('that sends a large mail to many recipients and disconnects has few copies made', async () => {
    const inboxes = await Promise.all(Array.from({ length: 30 }, () => createInbox(attacker)))
    const recipients = inboxes.flatMap(({ address }) =>
      Array.from({ length: 10 }, (_, tag) => address.replace('@', `+${tag}@`)),
    )
    const copiesIn = async (id: string) =>
      (await call<InboxJson>(attacker, 'GET', `/v1/inboxes/${id}`)).body.message_count
    const copies = async () => {
      const counts = await Promise.all(inboxes.map(({ id }) => copiesIn(id)))
      return counts.reduce((sum, count) => sum + count, 0)
    }
    await underAttack(async () => {
      const wire = await openWire(mayfly.smtpPort)
      await until('the greeting', () => wire.received() !== '')
      const to = recipients.map((address) => `RCPT TO:<${address}>\r\n`).join('')
      wire.write(`EHLO test\r\nMAIL FROM:<a@b.example>\r\n${to}DATA\r\n`)
      await until('DATA to be accepted', () => /^354 /m.test(wire.received()))
      // Random, so that it can't be compressed.
      const lines = randomBytes(1.5 * MIB)
        .toString('base64')
        .replaceAll(/.{76}/g, '$&\r\n')
      wire.write(`Subject: large\r\n\r\n${lines}\r\n.\r\n`)
      await until('a copy to be made', async () => (await copiesIn(inboxes[0]?.id ?? '')) > 0)
      wire.close()
      let made = 0
      await until('no more copies to be made', async () => {
        const madeBefore = made
        await pause(1_000)
        made = await copies()
        return made === madeBefore
      })
      expect(made).toBeLessThan(recipients.length / 2)
    })
  })

  it.each([
    {
      name: 'sends bodies in chunks of one byte',
      bytes: (head: string) => `${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(60_000)}`,
    },
    {
      name: 'sends thousands of requests ahead',
      bytes: () => 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3_000),
    },
  ])('that $name on many connections takes little memory, and others are served', async ({ bytes }) => {
    const addresses = Array.from({ length: 100 * SCALE }, (_, n) => `127.0.0.${10 + (n % 20)}`)
    await underAttack(async () => {
      const wires = await Promise.all(addresses.map((address) => openWire(httpPort(mayfly), address)))
      for (const wire of wires) wire.write(bytes(headOf(attacker)))
      await pause(2_000)
      for (const wire of wires) wire.close()
    })
  })

  it('that finishes none of its large bodies waits for its own memory, and others do not wait', async () => {
    const wires = await Promise.all(Array.from({ length: 40 * SCALE }, () => openWire(httpPort(mayfly))))
    try {
      for (const wire of wires) wire.write(`${headOf(attacker)}Content-Length: 262144\r\n\r\n{`)
      const create = (target: Target) =>
        call<ProblemJson>(target, 'POST', '/v1/inboxes', { body: `{${' '.repeat(20_000)}}` })
      await until('a request to be refused', async () => (await create(attacker)).status === 503)
      expect((await create(other)).status).toBe(201)
      expect(await create(attacker)).toMatchObject({ status: 503, body: { code: 'busy' } })
    } finally {
      for (const wire of wires) wire.close()
    }
    expect((await createInbox(attacker)).state).toBe('active')
  })

  it('that has all waits loses some of them to another account', async () => {
    const inbox = await createInbox(attacker)
    const answers = Array.from({ length: 4 }, () => ask(`/v1/inboxes/${inbox.id}/messages/wait?timeout=55`))
    await until('the waits to be open', async () => (await metric(mayfly, 'mayfly_open_waits')) === 4)
    const beyond = await call<ProblemJson>(attacker, 'GET', `/v1/inboxes/${inbox.id}/messages/wait`)
    expect(beyond).toMatchObject({ status: 503, body: { code: 'too-many-waits' } })

    const own = await createInbox(other)
    const waits = [1, 2].map(() =>
      call<MessageJson>(other, 'GET', `/v1/inboxes/${own.id}/messages/wait?timeout=55`),
    )
    const crowdedOut: number[] = []
    for (const answer of answers) {
      answer.then(
        ({ status }) => crowdedOut.push(status),
        () => undefined,
      )
    }
    await until('two of the waits to be ended', () => crowdedOut.length === 2)
    expect(crowdedOut).toEqual([503, 503])
    const third = await call<ProblemJson>(other, 'GET', `/v1/inboxes/${own.id}/messages/wait`)
    expect(third).toMatchObject({ status: 503, body: { code: 'too-many-waits' } })
    await send(other, own.address, largeMail(1_000))
    for (const { status } of await Promise.all(waits)) expect(status).toBe(200)
    hangUp()
    await Promise.allSettled(answers)
  })

  it('that has all streams loses some of them to another account', async () => {
    const [inbox, own] = [await createInbox(attacker), await createInbox(other)]
    const streams = await Promise.all(
      Array.from({ length: 60 }, () => listen(attacker, `/v1/inboxes/${inbox.id}/events`)),
    )
    const others = await Promise.all(
      Array.from({ length: 30 }, () => listen(other, `/v1/inboxes/${own.id}/events`)),
    )
    try {
      expect([...new Set(others.map(({ status }) => status))]).toEqual([200])
      await until('as many to be ended', () => streams.filter((stream) => stream.isOver()).length === 30)
      expect((await listen(other, `/v1/inboxes/${own.id}/events`)).status).toBe(503)
    } finally {
      for (const stream of [...streams, ...others]) stream.close()
    }
  })
})

/** The head of a request that creates an inbox, without the headers that delimit its body. */
function headOf({ apiKey }: Target): string {
  return `POST /v1/inboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\nContent-Type: application/json\r\n`
}

function largeMail(bytes: number, type = 'text/plain'): string {
  const line = `<p>${'y'.repeat(70)}</p>\r\n`
  return `Subject: large\r\nContent-Type: ${type}\r\n\r\n${line.repeat(Math.ceil(bytes / line.length))}`
}

function withAttachment(bytes: number): string {
  const line = `${'QUJD'.repeat(19)}\r\n`
  const head = [
    'Subject: a file',
    'Content-Type: multipart/mixed; boundary=part',
    '',
    '--part',
    'Content-Disposition: attachment; filename=a.bin',
    'Content-Type: application/octet-stream',
    'Content-Transfer-Encoding: base64',
    '',
    '',
  ]
  return `${head.join('\r\n')}${line.repeat(Math.ceil(bytes / 57))}--part--\r\n`
}

async function shown(target: Target, { id }: InboxJson, count: number): Promise<void> {
  await until(
    `${count} messages`,
    async () => (await call<InboxJson>(target, 'GET', `/v1/inboxes/${id}`)).body.message_count === count,
    60_000,
  )
}

async function attachmentOf(target: Target, { id }: InboxJson): Promise<string> {
  const [message] = await messagesOf(target, id, 1)
  return `/v1/inboxes/${id}/messages/${message?.id}/attachments/0`
}

async function metric(target: Target, name: string): Promise<number> {
  const { body } = await call<string>(target, 'GET', '/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(body)?.[1] ?? NaN)
}

/** The CPU time of the process that answers HTTP. */
async function cpuSecondsOf(target: Target): Promise<number> {
  await pause(1_100)
  return metric(target, 'process_cpu_seconds_total')
}
