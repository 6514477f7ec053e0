import { request } from 'node:http'
import { connect } from 'node:net'
import { call, createInbox, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { converse } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { AcknowledgedWrites } from './acknowledged-writes.js'

const CLIENTS = 6

/** How a request ended: with a status, refused before it was sent, or interrupted. */
type Outcome = { status: number; body: string } | 'refused' | 'cut'

describe('SIGTERM under load', () => {
  const acknowledged = new AcknowledgedWrites()
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
  })
  afterAll(() => mayfly.dispose())

  it('interrupts no answer, loses no accepted mail, and exits with 0', async () => {
    const inbox = await createInbox(mayfly)
    acknowledged.inboxes.set(inbox.id, inbox)
    const outcomes: Outcome[] = []
    const sessions: string[][] = []
    const clients = [
      ...Array.from({ length: CLIENTS }, () => createUntilRefused(outcomes)),
      ...Array.from({ length: CLIENTS }, () => sendUntilRefused(inbox, sessions)),
    ]
    await until('load', () => outcomes.length > 50 && acknowledged.accepted.size > 50)
    const exitCode = await mayfly.end('SIGTERM')
    await Promise.all(clients)

    expect(exitCode).toBe(0)
    expect(outcomes.filter((outcome) => outcome === 'cut')).toEqual([])
    const statuses = outcomes.map((outcome) => (typeof outcome === 'string' ? outcome : outcome.status))
    for (const status of statuses) expect([201, 503, 'refused']).toContain(status)
    // Each mail that was sent completely was answered, with 250 or a temporary refusal.
    for (const answers of sessions) {
      const last = answers.at(-1) ?? ''
      expect(last).toMatch(/^(250 2\.0\.0|421|451) /)
    }
    expect(mayfly.output().stderr).toMatch('"msg":"ended"')

    mayfly = await mayfly.restart()
    await acknowledged.verify(mayfly)
    const { body } = await call<InboxJson[]>(mayfly, 'GET', '/v1/inboxes?limit=1000')
    expect(new Set(body.map(({ id }) => id))).toEqual(new Set(acknowledged.inboxes.keys()))
  }, 120_000)

  it('ends the process at once if it is sent twice', async () => {
    // A mail that is never finished delays the drain.
    const inbox = await createInbox(mayfly)
    const socket = connect(mayfly.smtpPort, '127.0.0.1')
    let said = ''
    socket.on('data', (text) => (said += text.toString()))
    await until('the greeting', () => said.startsWith('220 '))
    socket.write(`EHLO tests\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<${inbox.address}>\r\nDATA\r\n`)
    socket.on('error', () => socket.destroy())
    await until('the mail to start', () => /^354 /m.test(said))
    const ended = mayfly.end('SIGTERM')
    await until('draining', () => mayfly.output().stderr.includes('"msg":"draining"'))
    process.kill(mayfly.pid, 'SIGTERM')
    expect(await ended).toBe('SIGTERM')
    mayfly = await mayfly.restart()
    await acknowledged.verify(mayfly)
  }, 120_000)

  async function createUntilRefused(outcomes: Outcome[]): Promise<void> {
    for (;;) {
      const outcome = await post(mayfly)
      outcomes.push(outcome)
      if (typeof outcome === 'string' || outcome.status !== 201) return
      const inbox = JSON.parse(outcome.body) as InboxJson
      acknowledged.inboxes.set(inbox.id, inbox)
    }
  }

  async function sendUntilRefused({ id: inboxId, address }: InboxJson, sessions: string[][]): Promise<void> {
    for (;;) {
      const { source, sha256 } = acknowledged.makeSource(inboxId)
      const lines = ['EHLO tests', 'MAIL FROM:<a@example.com>', `RCPT TO:<${address}>`, 'DATA', `${source}.`]
      const answers = await converse(mayfly.smtpPort, lines).catch(() => null)
      // The connection was refused.
      if (answers === null || answers.length === 0) return
      sessions.push(answers)
      if (answers.length < 6 || !/^250 /.test(answers[5] ?? '')) return
      acknowledged.recordMail(answers[5] ?? '', { inboxId, sha256 })
    }
  }
})

describe('a process with a fatal error', () => {
  it.each(['SIGSEGV', 'SIGABRT'] as const)('ends at once with %s', async (signal) => {
    const mayfly = await startMayfly({ hasAnalytics: true })
    expect(await mayfly.end(signal)).toBe(signal)
    await mayfly.dispose()
  })
})

/** Requests an inbox on a new connection. */
function post({ url, apiKey }: Mayfly): Promise<Outcome> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-length': '0' }
    const sent = request(`${url}/v1/inboxes`, { method: 'POST', headers, agent: false }, (response) => {
      let body = ''
      response.on('data', (text: Buffer) => (body += text.toString()))
      response.on('error', () => resolve('cut'))
      response.on('end', () =>
        resolve(response.complete ? { status: response.statusCode ?? 0, body } : 'cut'),
      )
    })
    sent.on('error', () => resolve('refused'))
    sent.end()
  })
}
