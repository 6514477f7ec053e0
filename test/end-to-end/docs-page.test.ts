import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompressSync } from 'node:zlib'
import { Parser } from 'htmlparser2'
import { request } from 'undici'
import type { Document, Operation } from '#apps/api/openapi/openapi-json.js'
import { PROBLEM_CODES } from '#apps/api/http/problems.js'
import { issueKey, openAccount } from '#test/harness/accounts.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { call, createInbox, messagesOf, send } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { richMail } from '#test/harness/rich-mail.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

const run = promisify(execFile)
const VOID = new Set(['meta', 'link', 'br', 'img', 'input', '!doctype'])

describe('the page /docs', () => {
  let mayfly: SharedMayfly
  let html: string
  let policy: string
  let page: Page

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    const answer = await call<string>(mayfly, 'GET', '/docs', { headers: { accept: 'text/html' } })
    html = answer.body
    policy = answer.headers.get('content-security-policy') ?? ''
    page = read(html)
  })

  it('closes every tag, in order', () => {
    expect(page.unbalanced).toEqual([])
    expect(page.title).toBe('Mayfly API')
  })

  it('loads and runs nothing, and its policy allows only its own style', () => {
    const digest = createHash('sha256').update(page.style).digest('base64')
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/)
    expect(policy).toContain(`'sha256-${digest}'`)
    expect(page.tags).not.toContain('script')
    expect(page.tags).not.toContain('link')
    expect(html).not.toMatch(/\ssrc=|\sstyle=|@import|url\(|\son\w+=/)
  })

  test.each(['/docs', '/openapi.json', '/console'])('%s is compressed, and sent once', async (path) => {
    const load = async (headers: Record<string, string>) => {
      const { statusCode: status, headers: answered, body } = await request(mayfly.url + path, { headers })
      const { 'content-encoding': encoding = null, etag = '', vary } = answered
      return { status, encoding, etag: String(etag), vary, bytes: Buffer.from(await body.arrayBuffer()) }
    }
    const [plain, brotli] = [await load({}), await load({ 'accept-encoding': 'gzip, br' })]
    expect([plain.encoding, brotli.encoding, brotli.vary]).toEqual([null, 'br', 'Accept-Encoding'])
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).toBe(true)
    expect(plain.etag).not.toBe(brotli.etag)
    const again = await load({ 'accept-encoding': 'br', 'if-none-match': `"other", W/${brotli.etag}` })
    expect(again).toMatchObject({ status: 304, etag: brotli.etag, bytes: Buffer.alloc(0) })
    expect(await load({ 'if-none-match': '"other"' })).toMatchObject({ status: 200, etag: plain.etag })
  })

  it('has no broken links', async () => {
    expect(new Set(page.ids).size).toBe(page.ids.length)
    const anchors = page.links.filter((href) => href.startsWith('#'))
    expect(anchors.length).toBeGreaterThan(50)
    for (const href of anchors) expect(page.ids).toContain(href.slice(1))
    for (const href of page.links.filter((each) => !each.startsWith('#'))) {
      const { status } = await call(mayfly, 'GET', new URL(href, `${mayfly.url}/docs`).pathname)
      expect({ href, status }).toEqual({ href, status: 200 })
    }
  })

  it('answers with a trailing slash too, and has an icon', async () => {
    const answer = await fetch(`${mayfly.url}/docs/`)
    expect([answer.url, (await answer.text()) === html]).toEqual([`${mayfly.url}/docs`, true])
    const icon = await fetch(`${mayfly.url}/favicon.ico`)
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/x-icon'])
    expect(Buffer.from(await icon.arrayBuffer()).readUInt32LE()).toBe(0x10000)
    expect(policy).toContain("img-src 'self'")
  })

  it('describes every operation, schema, header and problem', async () => {
    const { body: document } = await call<Document>(mayfly, 'GET', '/openapi.json')
    const { webhooks, components } = document
    const sent = Object.values(webhooks).map(({ post }) => post)
    expect(sent).toHaveLength(WEBHOOK_EVENT_TYPES.length)
    const operations = [...operationsOf(document), ...sent]
    for (const { operationId } of operations) expect(page.ids).toContain(operationId)
    for (const name of Object.keys(components.schemas)) expect(page.ids).toContain(name)
    for (const code of PROBLEM_CODES) expect(page.ids).toContain(code)
    for (const name of Object.keys(components.headers)) expect(html).toContain(`<code>${name}</code>`)
    for (const { summary, parameters } of operations) {
      expect(page.text).toContain(summary)
      for (const { description } of parameters) expect(page.text).toContain(description.replaceAll('`', ''))
    }
  })
})

describeWith('curl')('the curl commands of /docs', () => {
  const ENDING = /-X (?:PATCH|DELETE)|\/rotate'/
  let mayfly: Mayfly
  let folder: string

  beforeAll(async () => {
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', ...NO_DNS }
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true, env })
    folder = await mkdtemp(join(tmpdir(), 'mayfly-curl-'))
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  it('run unchanged, one for each operation', async () => {
    const { commands } = read((await call<string>(mayfly, 'GET', '/docs')).body)
    const document = (await call<Document>(mayfly, 'GET', '/openapi.json')).body
    expect(commands).toHaveLength(operationsOf(document).length)
    const ids = await makeOneOfEach()
    // Commands that end or change something run last, a message before its inbox.
    const rank = (command: string) => (ENDING.test(command) ? -command.length : -Infinity)
    for (const command of commands.toSorted((one, other) => rank(one) - rank(other))) {
      const own = command.replaceAll(
        /(inb|msg|whk|dlv|rpl|tok|key|dom|acc)_\w{26}/g,
        (_, kind: string) => ids[kind] ?? '',
      )
      expect(own).toContain(`'${mayfly.url}/`)
      const seconds = own.startsWith('curl -N') ? 10 : 20
      const script = own.replace('curl ', `curl -s -m ${seconds} -w '\\n%{http_code}' `)
      const env = { PATH: process.env.PATH, MAYFLY_KEY: mayfly.apiKey }
      // A stream ends with an error when its time is over.
      const { stdout } = await run('sh', ['-c', script], { cwd: folder, env }).catch(
        (error: unknown) => error as { stdout: string },
      )
      expect([own, stdout.slice(stdout.lastIndexOf('\n') + 1)]).toEqual([
        own,
        expect.stringMatching(/^20\d$/) as unknown,
      ])
    }
    expect((await readdir(folder)).toSorted()).toEqual([
      'logo.png',
      'mayfly-usage.ndjson',
      expect.stringMatching(/^msg_\w+\.eml$/),
    ])
  })

  /** An id of each kind. */
  async function makeOneOfEach(): Promise<Record<string, string>> {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, richMail(inbox.address))
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    const webhook = await registerWebhook(mayfly, '/v1/webhooks', { url: 'http://127.0.0.1:9/hook' })
    await call(mayfly, 'POST', `/v1/webhooks/${webhook.id}/test`)
    const [delivery] = await until('a delivery', async () => {
      const deliveries = await deliveriesOf(mayfly, webhook.id)
      return deliveries.length > 0 ? deliveries : null
    })
    const range = { from: inbox.created_at, to: inbox.created_at }
    const body = { ...range, from: new Date(Date.parse(inbox.created_at) - 1_000).toISOString() }
    const replay = await call<{ id: string }>(mayfly, 'POST', `/v1/webhooks/${webhook.id}/replays`, { body })
    const token = await call<{ id: string }>(mayfly, 'POST', `/v1/inboxes/${inbox.id}/tokens`)
    const domain = await call<{ id: string }>(mayfly, 'POST', '/v1/domains', {
      body: { hosted: true, environment: 'development' },
    })
    const made = [
      inbox,
      message,
      webhook,
      delivery,
      replay.body,
      token.body,
      domain.body,
      await issueKey(mayfly),
      await openAccount(mayfly),
    ]
    return Object.fromEntries(made.map((each) => [each?.id.slice(0, 3) ?? '', each?.id ?? '']))
  }
})

function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths)
    .filter(([path]) => !path.startsWith('/v1/emails'))
    .flatMap(([, methods]) => Object.values(methods))
}

interface Page {
  title: string
  text: string
  style: string
  tags: string[]
  ids: string[]
  links: string[]
  commands: string[]
  /** Unbalanced tags. */
  unbalanced: string[]
}

function read(html: string): Page {
  const page: Page = {
    title: '',
    text: '',
    style: '',
    tags: [],
    ids: [],
    links: [],
    commands: [],
    unbalanced: [],
  }
  const open: string[] = []
  let isCommand = false
  const parser = new Parser({
    onopentag(name, { id, href, class: kind }) {
      page.tags.push(name)
      if (name === 'pre') isCommand = kind === 'curl'
      if (isCommand) page.commands.push('')
      if (id !== undefined) page.ids.push(id)
      if (href !== undefined) page.links.push(href)
      if (!VOID.has(name)) open.push(name)
    },
    ontext(text) {
      const within = open.at(-1)
      if (within === 'style') page.style += text
      else if (within === 'title') page.title += text
      else page.text += text
      if (isCommand) page.commands.push(`${page.commands.pop() ?? ''}${text}`)
    },
    onclosetag(name, isImplied) {
      if (VOID.has(name)) return
      isCommand = false
      if (isImplied || open.pop() !== name) page.unbalanced.push(name)
    },
  })
  parser.end(html)
  page.unbalanced.push(...open)
  return page
}
