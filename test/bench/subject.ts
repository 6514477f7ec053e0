import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Pool } from 'undici'
import { DEFAULT_SETTINGS, startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { realisticMail } from './realistic-mail.js'
import { sendAll } from './smtp-client.js'

export interface InboxHandle {
  id: string
  address: string
}

const DRAIN_WITHIN_MS = 300_000
const CAUGHT_UP_WITHIN_MS = 3_600_000

/** A Mayfly under measurement, with an HTTP client that costs little. */
export class Subject {
  private readonly http: Pool

  private constructor(readonly mayfly: Mayfly) {
    this.http = new Pool(mayfly.url, { connections: 20 })
  }

  static async start(
    profileDir: string | null,
    env: Readonly<Record<string, string>> = {},
    engine?: EngineName,
  ): Promise<Subject> {
    const settings = { ...DEFAULT_SETTINGS, ...env }
    const options = { hasWebhooks: true, hasAnalytics: true, ...(engine === undefined ? {} : { engine }) }
    if (profileDir === null) return new Subject(await startMayfly({ ...options, env: settings }))
    await mkdir(profileDir, { recursive: true })
    const flags = `--cpu-prof --cpu-prof-dir=${resolve(profileDir)}`
    return new Subject(await startMayfly({ ...options, env: { ...settings, NODE_OPTIONS: flags } }))
  }

  /** Stops it, runs `work` on its data folder, and starts it again. Resolves with the new subject. */
  async restartAfter(work: (dataDir: string) => Promise<void>): Promise<Subject> {
    await this.http.destroy()
    await this.mayfly.end('SIGTERM')
    await work(this.mayfly.dataDir)
    return new Subject(await this.mayfly.restart())
  }

  async createInbox(): Promise<InboxHandle> {
    const { status, text } = await this.request('POST', '/v1/inboxes', '{}')
    if (status !== 201) throw new Error(`no inbox: ${status} ${text}`)
    return JSON.parse(text) as InboxHandle
  }

  /** Creates a domain whose catch-all makes inboxes. Resolves with its name. */
  async createDomain(): Promise<string> {
    const body = JSON.stringify({ hosted: true, environment: 'development' })
    const { status, text } = await this.request('POST', '/v1/domains', body)
    if (status !== 201) throw new Error(`no domain: ${status} ${text}`)
    return (JSON.parse(text) as { name: string }).name
  }

  /** Creates inboxes, ten at once. */
  async createInboxes(count: number): Promise<InboxHandle[]> {
    const inboxes: InboxHandle[] = []
    let left = count
    const work = async () => {
      while (left-- > 0) inboxes.push(await this.createInbox())
    }
    await Promise.all(Array.from({ length: 10 }, work))
    return inboxes
  }

  /** Creates inboxes with one request. */
  async createInBulk(count: number): Promise<InboxHandle[]> {
    const { status, text } = await this.request('POST', '/v1/inboxes/bulk', JSON.stringify({ count }))
    if (status !== 201) throw new Error(`no inboxes: ${status} ${text}`)
    return (JSON.parse(text) as InboxHandle[]).map(({ id, address }) => ({ id, address }))
  }

  /** Sends sign-up mails to the inboxes in turn on 20 connections, as fast as they are accepted, numbered from `first`. */
  sendMails(inboxes: readonly InboxHandle[], mails: number, first = 0): Promise<void> {
    return sendAll({
      port: this.mayfly.smtpPort,
      connections: 20,
      mails,
      addressOf: (number) => inboxes[number % inboxes.length]?.address ?? '',
      sourceOf: (number, address) => realisticMail(first + number, address),
    })
  }

  async isVisible(inboxId: string, messageId: string): Promise<boolean> {
    const { status, text } = await this.request('GET', `/v1/inboxes/${inboxId}/messages/${messageId}`)
    if (status !== 200 && status !== 404) throw new Error(`no message: ${status} ${text}`)
    return status === 200
  }

  /** The body of a 200. */
  async read(path: string): Promise<string> {
    const { status, text } = await this.request('GET', path)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    return text
  }

  /** Messages that the API shows in all inboxes, which must fit in one page. */
  async visibleMessages(): Promise<number> {
    const { status, text } = await this.request('GET', '/v1/inboxes?limit=1000')
    // The views are being rebuilt.
    if (status === 503) return 0
    if (status !== 200) throw new Error(`no inboxes: ${status} ${text}`)
    const inboxes = JSON.parse(text) as { message_count: number }[]
    return inboxes.reduce((sum, { message_count: count }) => sum + count, 0)
  }

  async untilVisible(count: number): Promise<void> {
    await until(`${count} messages`, async () => (await this.visibleMessages()) >= count, DRAIN_WITHIN_MS)
  }

  /** Resolves once the views show everything that is on the log. */
  async untilCaughtUp(): Promise<void> {
    const isCaughtUp = async () => {
      const { status, text } = await this.request('GET', '/readyz')
      return status === 200 && (JSON.parse(text) as { backlog: number }).backlog === 0
    }
    await until('the views', isCaughtUp, CAUGHT_UP_WITHIN_MS)
  }

  /** Mails of the last 24 hours that usage has counted. */
  async countedMails(): Promise<number> {
    const rows = JSON.parse(await this.read('/v1/usage?interval=day')) as { mails: number }[]
    return rows.reduce((sum, { mails }) => sum + mails, 0)
  }

  /** A metric of /metrics, summed over its labels. */
  async metric(name: string): Promise<number> {
    const { text } = await this.request('GET', '/metrics')
    const samples = text
      .split('\n')
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    if (samples.length === 0) throw new Error(`/metrics has no ${name}`)
    return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
  }

  /** Stops it with SIGTERM, so that it can write its profiles, and removes its folder. */
  async dispose(): Promise<void> {
    await this.http.destroy()
    await this.mayfly.end('SIGTERM')
    await this.mayfly.dispose()
  }

  private async request(
    method: 'GET' | 'POST',
    path: string,
    body: string | null = null,
  ): Promise<{ status: number; text: string }> {
    const headers = {
      authorization: `Bearer ${this.mayfly.apiKey}`,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
    }
    const response = await this.http.request({ method, path, body, headers })
    return { status: response.statusCode, text: await response.body.text() }
  }
}
