import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompressSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { request } from 'undici'
import type { Document, Operation } from '#apps/api/openapi/openapi-json.js'
import { issueKey, openAccount } from '#test/harness/accounts.js'
import { startBrowser } from '#test/harness/browser.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { call, createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import { invite, join as joinAccount } from '#test/harness/members.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { richMail } from '#test/harness/rich-mail.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { auditLogOf } from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

const run = promisify(execFile)

describe('the files of /docs', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
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

  it('answers with a trailing slash too, and has an icon', async () => {
    const page = await call<string>(mayfly, 'GET', '/docs', { headers: { accept: 'text/html' } })
    const answer = await fetch(`${mayfly.url}/docs/`)
    expect([answer.url, await answer.text()]).toEqual([`${mayfly.url}/docs`, page.body])
    const icon = await fetch(`${mayfly.url}/favicon.ico`)
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/x-icon'])
    expect(Buffer.from(await icon.arrayBuffer()).readUInt32LE()).toBe(0x10000)
  })

  it('loads only files of this server, and allows no other scripts', async () => {
    const { body, headers } = await call<string>(mayfly, 'GET', '/docs', { headers: { accept: 'text/html' } })
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; style-src/,
    )
    const urls = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url)
    expect(urls.length).toBeGreaterThan(2)
    for (const url of urls) expect([url, (await fetch(mayfly.url + url)).status]).toEqual([url, 200])
  })
})

describeWith('chromium')('the page /docs', () => {
  let mayfly: SharedMayfly
  let browser: Browser
  let page: Page
  const errors: string[] = []

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    browser = await startBrowser()
    page = await browser.newPage()
    page.setDefaultTimeout(30_000)
    page.on('pageerror', (error) => errors.push(String(error)))
    page.on('dialog', (dialog) => void dialog.dismiss().then(() => errors.push(dialog.message())))
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text())
    })
    await page.goto(`${mayfly.url}/docs`)
    await page.getByRole('link', { name: 'Create an inbox', exact: true }).waitFor()
  })
  afterAll(async () => {
    expect(errors).toEqual([])
    await browser.close()
  })

  it('lists every operation, event and schema', async () => {
    const { body: document } = await call<Document>(mayfly, 'GET', '/openapi.json')
    const sent = Object.values(document.webhooks).map(({ post }) => post)
    expect(sent).toHaveLength(WEBHOOK_EVENT_TYPES.length)
    const listed = await page.getByRole('navigation', { name: 'API Menu' }).innerText()
    for (const { summary } of [...operationsOf(document), ...sent]) expect(listed).toContain(summary)
    for (const name of Object.keys(document.components.schemas)) expect(listed).toContain(name)
  })

  it('finds operations by their names', async () => {
    const create = page.getByRole('link', { name: 'Create an inbox', exact: true })
    await page.getByPlaceholder('Filter').fill('create many')
    await create.waitFor({ state: 'detached' })
    expect(await page.getByRole('link', { name: 'Create many inboxes' }).count()).toBe(1)
    await page.getByPlaceholder('Filter').fill('')
    await create.waitFor()
  })

  it('sends a request with a key, and shows the answer as text', async () => {
    const inbox = await createInbox(mayfly)
    const subject = `<img src=x onerror=alert(1)>${inbox.id}`
    await send(mayfly, inbox.address, mail(subject, 'Hello'))
    await messagesOf(mayfly, inbox.id, 1)
    await page.getByRole('link', { name: 'Authentication' }).first().click()
    await page.getByPlaceholder('api-token').first().fill(mayfly.apiKey)
    await page.getByRole('button', { name: 'Set' }).first().click()
    await page.getByRole('link', { name: /^Messages/ }).click()
    await page.getByRole('link', { name: 'List the messages of all inboxes' }).first().click()
    const answered = page.waitForResponse((response) =>
      response.url().startsWith(`${mayfly.url}/v1/messages`),
    )
    await page.getByRole('button', { name: 'Execute' }).click()
    expect((await answered).status()).toBe(200)
    await page.getByText(subject, { exact: false }).first().waitFor()
  })

  it('shows the beginning of a stream', async () => {
    await page.goto(`${mayfly.url}/docs#?route=get-/v1/events`)
    await page.getByRole('button', { name: 'Execute' }).click()
    const inbox = await createInbox(mayfly)
    const ending = setInterval(() => void call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`), 500)
    await page.getByText('inbox.deleted').first().waitFor()
    clearInterval(ending)
  })

  it('sends no requests that Mayfly sends', async () => {
    await page.goto(`${mayfly.url}/docs#?route=post-key.expiring`)
    await page.getByText('The request that delivers').waitFor()
    await page.getByRole('button', { name: 'Execute' }).waitFor({ state: 'detached' })
  })
})

describeWith('curl')('the curl commands of the OpenAPI document', () => {
  const ENDING = /-X (?:PATCH|DELETE)|\/(?:rotate|close)'/
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
    const document = (await call<Document>(mayfly, 'GET', '/openapi.json')).body
    const commands = operationsOf(document).map(
      ({ 'x-code-samples': [sample] = [] }) => sample?.source ?? 'no sample',
    )
    const ids = await makeOneOfEach()
    const erased = await erasedInbox()
    // Commands that end or change something run last, a message before its inbox.
    const rank = (command: string) => (ENDING.test(command) ? -command.length : -Infinity)
    for (const command of commands.toSorted((one, other) => rank(one) - rank(other))) {
      const own = command
        .replace(/inb_\w{26}(?=\/erasure)/, erased)
        .replaceAll(/(inb|inv|msg|mem|whk|dlv|rpl|tok|key|dom|acc|log|evt)_\w{26}/g, (id, kind: string) =>
          id === erased ? id : (ids[kind] ?? ''),
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
  /** The id of an inbox that has a certificate of its erasure. */
  async function erasedInbox(): Promise<string> {
    const { id } = await createInbox(mayfly)
    await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    await until('the certificate', async () => {
      const { status } = await call(mayfly, 'GET', `/v1/inboxes/${id}/erasure`)
      return status === 200
    })
    return id
  }

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
    const log = await auditLogOf(mayfly)
    const event = await until('an event in the audit log', async () => {
      const { body } = await call<{ id: string }[]>(mayfly, 'GET', `/v1/audit/logs/${log.id}/events?limit=1`)
      return body[0]
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
      (await joinAccount(mayfly, { role: 'developer' })).member,
      await invite(mayfly, { role: 'developer' }),
      log,
      event,
    ]
    return Object.fromEntries(made.map((each) => [each?.id.slice(0, 3) ?? '', each?.id ?? '']))
  }
})

function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths)
    .filter(([path]) => !path.startsWith('/v1/emails'))
    .flatMap(([, methods]) => Object.values(methods))
}
