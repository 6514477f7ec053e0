import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { call, pagesFrom, type InboxJson, type MessageJson, type Target } from '#test/harness/client.js'
import {
  hostileSmtpServer,
  type HostileSmtpServer,
  type Reaction,
  type SmtpEvent,
} from '#test/harness/hostile-smtp-server.js'
import { startMayfly } from '#test/harness/mayfly.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'
import { freePort } from '#infra/servers/ports.js'

const MAIN = join(process.cwd(), 'dist/apps/cli/main.js')
const WITHIN_MS = 60_000

interface ReportJson {
  inboxes: number
  scheduled: number
  sent: number
  accepted: number
  retried: number
  refused: Record<string, number>
  unknown: number
  failed: number
  possible_duplicates: number
  errors: Record<string, number>
  rate: { wanted: number; reached: number }
  latency_ms: Record<'from_schedule' | 'from_start', { p50: number; p99: number; max: number } | null>
  max_lag_ms: number
  is_interrupted: boolean
}

interface LineJson {
  recipient: string
  id: string
  sent_at: string
  accepted_at: string | null
  sha256: string | null
  error?: string
}

interface ListedMessage extends MessageJson {
  headers: { name: string; value: string }[]
  recipient: string
}

const sha256 = (source: string) => createHash('sha256').update(source, 'latin1').digest('hex')

describe('mayfly load smtp', () => {
  let mayfly: SharedMayfly
  let folder: string
  let label: string
  let manifest: string
  const peers: HostileSmtpServer[] = []
  let runs = 0

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    folder = await mkdtemp(join(tmpdir(), 'mayfly-load-'))
  })
  beforeEach(() => {
    runs += 1
    label = `run:load-${runs}`
    manifest = join(folder, `${runs}.ndjson`)
  })
  afterEach(() => Promise.all(peers.splice(0).map((peer) => peer.close())))
  afterAll(() => rm(folder, { recursive: true }))

  /** Starts `mayfly load smtp --json` with a manifest. */
  function start(target: Target, port: number, args: readonly string[], env: Record<string, string> = {}) {
    const given = ['--target', `127.0.0.1:${port}`, '--label', label, '--manifest', manifest, ...args]
    const child = spawn(process.execPath, [MAIN, '--json', 'load', 'smtp', ...given], {
      env: { PATH: process.env.PATH, MAYFLY_URL: target.url, MAYFLY_KEY: target.apiKey, ...env },
      timeout: WITHIN_MS,
    })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (more: string) => (stderr += more))
    const ended = Promise.all([once(child, 'close'), text(child.stdout)]).then(([[code], stdout]) => ({
      code: code as number | null,
      stdout,
      stderr,
    }))
    return { child, ended, stderr: () => stderr }
  }

  async function run(
    target: Target,
    port: number,
    args: readonly string[],
    env: Record<string, string> = {},
  ) {
    const { code, stdout, stderr } = await start(target, port, args, env).ended
    return { code, stderr, report: stdout === '' ? null : (JSON.parse(stdout) as ReportJson) }
  }

  async function peerThat(react: Reaction): Promise<HostileSmtpServer> {
    const peer = await hostileSmtpServer(react)
    peers.push(peer)
    return peer
  }

  async function linesOf(path: string): Promise<LineJson[]> {
    const content = await readFile(path, 'utf8')
    expect(content).toMatch(/^(?:\{.*\}\n)*$/)
    return content
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as LineJson)
  }

  /** Resolves with what identifies the mails of the label's inboxes, once there are as many. */
  async function arrivedAt(target: Target, count: number): Promise<string[]> {
    const path = `/v1/messages?label=${label}&limit=100`
    return until(`${count} messages`, async () => {
      const pages = await pagesFrom<ListedMessage>(target, path)
      const messages = pages.flatMap(({ body }) => body)
      return messages.length >= count && messages.map(identityOfMessage).sort()
    })
  }

  const identityOfMessage = (message: ListedMessage) => {
    const id = message.headers.find(({ name }) => name.toLowerCase() === 'message-id')?.value
    return `${message.recipient} ${id ?? ''} ${message.sha256}`
  }
  const identityOfLine = ({ recipient, id, sha256: digest }: LineJson) => `${recipient} ${id} ${digest ?? ''}`

  it('sends every mail once, on time, and writes all of them to the manifest', async () => {
    const args = ['--rate', '100/s', '--duration', '3s', '--inboxes', '30', '--connections', '4']
    const { code, stderr, report } = await run(mayfly, mayfly.smtpPort, args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(report).toMatchObject({
      ...{ inboxes: 30, scheduled: 300, sent: 300, accepted: 300, unknown: 0, failed: 0 },
      ...{ refused: {}, errors: {}, possible_duplicates: 0, is_interrupted: false },
    })
    const { from_schedule: fromSchedule, from_start: fromStart } = report?.latency_ms ?? {}
    expect(fromSchedule?.p50).toBeGreaterThanOrEqual(fromStart?.p50 ?? Infinity)
    expect(fromStart?.max).toBeGreaterThanOrEqual(fromStart?.p99 ?? Infinity)

    const lines = await linesOf(manifest)
    for (const line of lines) {
      expect(Object.keys(line)).toEqual(['recipient', 'id', 'sent_at', 'accepted_at', 'sha256'])
      expect(Date.parse(line.accepted_at ?? '')).toBeGreaterThanOrEqual(Date.parse(line.sent_at))
    }
    expect(await arrivedAt(mayfly, 300)).toEqual(lines.map(identityOfLine).sort())
    const { body: inboxes } = await call<InboxJson[]>(mayfly, 'GET', `/v1/inboxes?label=${label}&limit=100`)
    expect(inboxes.map(({ message_count }) => message_count)).toEqual(Array(30).fill(10))
  })

  it('sends to the inboxes that have the label, with --reuse', async () => {
    const body = { count: 5, labels: { run: label.slice(4) } }
    const made = await call<InboxJson[]>(mayfly, 'POST', '/v1/inboxes/bulk', { body })
    const { report } = await run(mayfly, mayfly.smtpPort, ['--rate', '100/s', '--mails', '10', '--reuse'])
    expect(report).toMatchObject({ inboxes: 5, accepted: 10 })
    const recipients = new Set((await linesOf(manifest)).map(({ recipient }) => recipient))
    expect([...recipients].sort()).toEqual(made.body.map(({ address }) => address).sort())
  })

  it('ends with a report and a complete manifest after Ctrl-C', async () => {
    const sending = start(mayfly, mayfly.smtpPort, ['--rate', '50/s', '--duration', '5m', '--inboxes', '5'])
    await until('the first lines', async () => (await readFile(manifest, 'utf8').catch(() => '')) !== '')
    sending.child.kill('SIGINT')
    const { code, stdout } = await sending.ended
    expect(code).toBe(130)
    const report = JSON.parse(stdout) as ReportJson
    expect(report).toMatchObject({ scheduled: 15_000, unknown: 0, failed: 0, is_interrupted: true })
    expect(report.accepted).toBe(report.sent)
    const lines = await linesOf(manifest)
    expect(lines).toHaveLength(report.accepted)
    expect(await arrivedAt(mayfly, report.accepted)).toEqual(lines.map(identityOfLine).sort())
  })

  it('counts mails in flight as unknown after Ctrl-C, and ends at once after the second one', async () => {
    let isInFlight = false
    const silent = await peerThat((event) => {
      if (event !== 'content') return null
      isInFlight = true
      return 'silence'
    })
    // The next mail is not due before the end: this server would reply to its commands.
    const args = ['--rate', '1/m', '--duration', '5m', '--inboxes', '1', '--connections', '1']
    const patient = start(mayfly, silent.port, args)
    await until('a mail in flight', () => isInFlight)
    patient.child.kill('SIGINT')
    const { code, stdout } = await patient.ended
    expect(code).toBe(130)
    expect(JSON.parse(stdout)).toMatchObject({ sent: 1, accepted: 0, unknown: 1, failed: 0 })
    expect(await linesOf(manifest)).toMatchObject([
      { accepted_at: null, error: 'connection lost before the reply to the content' },
    ])

    isInFlight = false
    const hasty = start(mayfly, silent.port, args)
    await until('a mail in flight', () => isInFlight)
    hasty.child.kill('SIGINT')
    await until('the first Ctrl-C', () => hasty.stderr().includes('Ctrl-C again'))
    hasty.child.kill('SIGINT')
    expect(await hasty.ended).toMatchObject({ code: 130, stdout: '' })
  })

  it('counts refusals by their code, and goes on with the next mail', async () => {
    let recipients = 0
    let contents = 0
    const peer = await peerThat((event) => {
      if (event === 'RCPT') return recipients++ % 4 === 0 ? '550 5.1.1 unknown' : null
      if (event === 'content') return contents++ % 3 === 0 ? '552 5.3.4 too large' : null
      return null
    })
    const args = ['--rate', '1000/s', '--mails', '40', '--inboxes', '1', '--connections', '2']
    const { code, stderr, report } = await run(mayfly, peer.port, args)
    // A refused recipient is followed by an empty content, which this server refuses or accepts as any other.
    const refusedContents =
      (report?.refused['552'] ?? 0) + peer.accepted.filter((source) => source !== '').length
    expect(report).toMatchObject({ sent: 40, refused: { 550: 10 }, retried: 0, errors: {} })
    expect(refusedContents).toBe(30)
    expect(report?.accepted).toBe(peer.accepted.filter((source) => source !== '').length)
    expect(code).toBe(1)
    expect(stderr).toContain(`${40 - (report?.accepted ?? 0)} of 40 mails were not accepted`)
    expect(peer.violations).toEqual([])
    const errors = (await linesOf(manifest))
      .filter(({ accepted_at: at }) => at === null)
      .map(({ error }) => error)
    expect(errors.filter((error) => error === '550 5.1.1 unknown')).toHaveLength(10)
  })

  const greylisting: { at: SmtpEvent; reply: string }[] = [
    { at: 'RCPT', reply: '451 4.7.1 greylisted' },
    { at: 'MAIL', reply: '452 4.3.1 busy' },
    { at: 'DATA', reply: '451 4.3.0 later' },
    { at: 'content', reply: '450 4.2.0 greylisted' },
  ]
  it.each(greylisting)('retries a mail that is refused with $reply at $at', async ({ at, reply }) => {
    let attempts = 0
    const peer = await peerThat((event) => (event === at && attempts++ < 20 ? reply : null))
    const args = ['--rate', '1000/s', '--mails', '20', '--inboxes', '20', '--retry-delay', '50ms']
    const { code, report } = await run(mayfly, peer.port, args)
    expect({ code, ...report }).toMatchObject({ code: 0, sent: 20, accepted: 20, refused: {}, errors: {} })
    // The first attempts were refused, and no mail needed more than its retries.
    expect(report?.retried).toBe(20)
    expect(peer.violations).toEqual([])
    const sources = peer.accepted.filter((source) => source !== '')
    expect(sources.map(sha256).sort()).toEqual((await linesOf(manifest)).map((line) => line.sha256).sort())
  })

  it('counts a mail as refused if each of its attempts is', async () => {
    const peer = await peerThat((event) => (event === 'RCPT' ? '451 4.7.1 later' : null))
    const args = [
      '--rate',
      '100/s',
      '--mails',
      '3',
      '--inboxes',
      '1',
      '--retries',
      '2',
      '--retry-delay',
      '10ms',
    ]
    const { code, report } = await run(mayfly, peer.port, args)
    expect({ code, ...report }).toMatchObject({
      code: 1,
      sent: 3,
      accepted: 0,
      retried: 6,
      refused: { 451: 3 },
    })
  })

  it('counts a mail whose connection is lost before the reply to the content', async () => {
    let contents = 0
    const first = await peerThat((event) => (event === 'content' && contents++ === 0 ? 'close' : null))
    const args = ['--rate', '100/s', '--mails', '5', '--inboxes', '1', '--connections', '1']
    const retried = await run(mayfly, first.port, [...args, '--retry-delay', '10ms'])
    expect({ code: retried.code, ...retried.report }).toMatchObject({
      ...{ code: 0, sent: 5, accepted: 5, unknown: 0, possible_duplicates: 1 },
    })
    expect(first.connections.total).toBe(2)

    contents = 0
    const second = await peerThat((event) => (event === 'content' && contents++ === 0 ? 'close' : null))
    const { code, report } = await run(mayfly, second.port, [...args, '--retries', '0'])
    expect({ code, ...report }).toMatchObject({ code: 1, sent: 5, unknown: 1, possible_duplicates: 0 })
    expect((report?.accepted ?? 0) + (report?.failed ?? 0)).toBe(4)
  })

  it('opens connections again, after 421 too, but never more than it may', async () => {
    let contents = 0
    const peer = await peerThat(async (event) => {
      if (event === 'QUIT') return null
      await new Promise(setImmediate)
      return event === 'content' && contents++ % 10 === 9 ? '421 4.3.2 restarting' : null
    })
    const args = ['--rate', '1000/s', '--mails', '100', '--inboxes', '5', '--connections', '3']
    const { code, report } = await run(mayfly, peer.port, [...args, '--retry-delay', '10ms'])
    expect({ code, ...report }).toMatchObject({ code: 0, accepted: 100, possible_duplicates: 0 })
    expect(report?.errors['421']).toBeGreaterThan(5)
    expect(peer.connections.max).toBeLessThanOrEqual(3)
    expect(peer.violations).toEqual([])
  })

  it('sends one command at a time to a server without PIPELINING', async () => {
    let recipients = 0
    const peer = await peerThat((event) => {
      if (event === 'EHLO') return '250 hostile.test'
      return event === 'RCPT' && recipients++ === 2 ? '550 5.1.1 unknown' : null
    })
    const args = ['--rate', '1000/s', '--mails', '20', '--inboxes', '1', '--connections', '2']
    const { report } = await run(mayfly, peer.port, args)
    expect(report).toMatchObject({ sent: 20, accepted: 19, refused: { 550: 1 } })
    expect(peer.violations).toEqual([])
  })

  it('counts the latency from the scheduled time if the server is slower than the rate', async () => {
    const peer = await peerThat(async (event) => {
      if (event === 'content') await new Promise((resolve) => setTimeout(resolve, 50))
      return null
    })
    const args = ['--rate', '1000/s', '--mails', '40', '--inboxes', '1', '--connections', '2']
    const { report } = await run(mayfly, peer.port, args)
    expect(report).toMatchObject({ sent: 40, accepted: 40 })
    // The last of 40 mails waits for nearly 20 others on its connection.
    expect(report?.latency_ms.from_schedule?.max).toBeGreaterThan(900)
    expect(report?.max_lag_ms).toBeGreaterThan(700)
    expect(report?.latency_ms.from_start?.max).toBeLessThan(report?.latency_ms.from_schedule?.max ?? 0)
  })

  it('sends over STARTTLS and implicit TLS, and refuses a certificate that it does not trust', async () => {
    const env = { MAYFLY_SMTP_TLS: 'self-signed', MAYFLY_SMTPS_PORT: '0' }
    const secured = await startMayfly({ isOneProcess: true, env })
    try {
      const [plainPort, tlsPort] = [secured.smtpPort, secured.smtpsPort ?? 0]
      const args = ['--rate', '200/s', '--mails', '20', '--inboxes', '5']
      const startTls = [...args, '--tls', 'starttls']
      const trusting = await run(secured, plainPort, startTls, {
        NODE_EXTRA_CA_CERTS: secured.smtpCaFile ?? '',
      })
      expect({ code: trusting.code, ...trusting.report }).toMatchObject({ code: 0, accepted: 20 })
      const implicit = await run(secured, tlsPort, [...args, '--tls', 'implicit', '--insecure'])
      expect({ code: implicit.code, ...implicit.report }).toMatchObject({ code: 0, accepted: 20 })
      const messages = await until('40 messages', async () => {
        const { body } = await call<{ envelope: { tls: object | null } }[]>(
          secured,
          'GET',
          `/v1/messages?label=${label}&limit=100`,
        )
        return body.length === 40 && body
      })
      expect(messages.filter(({ envelope }) => envelope.tls === null)).toEqual([])
      const refusing = await run(secured, plainPort, startTls)
      expect(refusing).toMatchObject({ code: 5, report: null })
      expect(refusing.stderr).toMatch(/no connection to .*: .*(CERT|SIGNATURE)/)
    } finally {
      await secured.dispose()
    }
  })

  it('refuses text that a server sends before TLS, and a server without STARTTLS', async () => {
    const args = ['--rate', '10/s', '--mails', '1', '--inboxes', '1', '--tls', 'starttls', '--insecure']
    const plain = await peerThat(() => null)
    expect((await run(mayfly, plain.port, args)).stderr).toContain('STARTTLS is not offered')
    const injecting = await peerThat((event) =>
      event === 'EHLO' ? '250 STARTTLS' : event === 'greeting' ? null : '220 go on\r\n250 PIPELINING',
    )
    expect((await run(mayfly, injecting.port, args)).stderr).toContain('text before TLS')
  })

  it('exits with 5 if the target is not reachable', async () => {
    const { code, stderr, report } = await run(mayfly, await freePort(), ['--rate', '1/s', '--mails', '1'])
    expect({ code, report }).toEqual({ code: 5, report: null })
    expect(stderr).toContain('ECONNREFUSED')
  })

  it('reports an invalid command line, and a manifest that cannot be written', async () => {
    const wrong = [
      { args: ['--rate', '500', '--mails', '1'], says: /such as 500\/s/ },
      { args: ['--rate', '1/s'], says: /give --duration, --mails or both/ },
      { args: ['--rate', '1/s', '--duration', '5'], says: /such as 5m/ },
      { args: ['--rate', '1/s', '--mails', '0'], says: /whole number, at least 1/ },
      { args: ['--rate', '1/s', '--mails', '1', '--size', '10'], says: /from 1k to 64m/ },
      { args: ['--rate', '1/s', '--mails', '1', '--tls', 'yes'], says: /Allowed choices are none, starttls/ },
      { args: ['--mails', '1'], says: /required option '--rate/ },
    ]
    for (const { args, says } of wrong) {
      const { code, stderr } = await run(mayfly, 25, args)
      expect({ args, code }).toEqual({ args, code: 2 })
      expect(stderr).toMatch(says)
    }
    manifest = join(folder, 'none', 'manifest.ndjson')
    const unwritable = await run(mayfly, mayfly.smtpPort, ['--rate', '1/s', '--mails', '1'])
    expect(unwritable.code).toBe(1)
    expect(unwritable.stderr).toContain("manifest.ndjson can't be written: ENOENT")
    // A device without space.
    manifest = '/dev/full'
    const full = await run(mayfly, mayfly.smtpPort, ['--rate', '10/s', '--duration', '5m', '--inboxes', '1'])
    expect(full).toMatchObject({ code: 1, report: { is_interrupted: false } })
    expect(full.report?.sent).toBeLessThan(3_000)
    expect(full.stderr).toContain("/dev/full can't be written: ENOSPC")
  })
})
