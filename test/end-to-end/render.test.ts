import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  send,
  type Answer,
  type Target,
} from '#test/harness/client.js'
import { signIn } from '#test/harness/console.js'
import { startMayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { IMAGE } from '#test/harness/rich-mail.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'

interface Ticket {
  url: string
  expires_at: string
  blocked: number
}

const TITLE = /<title>Resource not found<\/title><p>This link was used before or has expired/

function htmlMail(html: string): string {
  return ['Subject: html', 'MIME-Version: 1.0', 'Content-Type: text/html; charset=utf-8', '', html, ''].join(
    '\r\n',
  )
}

const WITH_IMAGE = [
  'Subject: image',
  'MIME-Version: 1.0',
  'Content-Type: multipart/related; boundary=part',
  '',
  '--part',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>Hëllo <img src="cid:logo@app.example"><img src="cid:page@app.example"></p>',
  '--part',
  'Content-Type: image/png; name="../../logo.png"',
  'Content-ID: <logo@app.example>',
  'Content-Transfer-Encoding: base64',
  '',
  IMAGE.toString('base64'),
  '--part',
  'Content-Type: image/svg+xml',
  'Content-ID: <page@app.example>',
  '',
  '<svg/>',
  '--part--',
  '',
].join('\r\n')

describe('showing the HTML of a message', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  /** Sends a mail. Resolves with the body of a request to show it. */
  async function received(source: string): Promise<{ inbox_id: string; message_id: string }> {
    const inbox = await inboxWith(mayfly, source)
    return { inbox_id: inbox.id, message_id: only(await messagesOf(mayfly, inbox.id, 1)).id }
  }

  /** Not through `call`, which expects an answer that the OpenAPI document has. */
  async function ask(
    body: object,
    { url, apiKey }: Target = mayfly,
    headers: Record<string, string> = {},
  ): Promise<Answer<Ticket>> {
    const response = await fetch(`${url}/console/render`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Ticket }
  }

  async function ticketFor(body: object): Promise<Ticket> {
    const answer = await ask(body)
    expect(answer.status).toBe(201)
    return answer.body
  }

  /** Loads a document as a frame does: without a key. */
  async function load(url: string) {
    const response = await fetch(mayfly.url + url)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it('takes a key, and then a URL that works once without one', async () => {
    const before = Date.now()
    const { url, expires_at, blocked } = await ticketFor(await received(WITH_IMAGE))
    expect(url).toMatch(/^\/console\/render\/[\w.-]{100,1000}$/)
    expect(Date.parse(expires_at) - before).toBeGreaterThan(59_000)
    expect(blocked).toBe(0)
    const { status, headers, text } = await load(url)
    expect(status).toBe(200)
    expect(text).toBe(
      `<!doctype html><html style="overflow-wrap:break-word"><head></head><body><p>Hëllo <img src="data:image/png;base64,${IMAGE.toString('base64')}">` +
        '<img></p></body></html>',
    )
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; " +
        "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'SAMEORIGIN',
      'x-dns-prefetch-control': 'off',
      'cross-origin-resource-policy': 'same-origin',
    })
    const again = await load(url)
    expect(again).toMatchObject({ status: 404, text: expect.stringMatching(TITLE) as unknown })
    expect(again.headers.get('content-type')).toMatch(/^text\/html/)
    expect(again.headers.get('content-security-policy')).toMatch(/^sandbox .*; frame-ancestors 'self'$/)
  })

  const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64')
  const related = (
    partHeader: string,
    image: Buffer | string,
    { html, header = '' }: { html: string; header?: string },
  ) =>
    [
      `MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=part\r\n${header}\r\n--part`,
      `Content-Type: text/html\r\n\r\n${html}\r\n--part`,
      `${partHeader}\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(image)}\r\n--part--\r\n`,
    ].join('\r\n')
  const byId = (type: string) => `Content-Type: ${type}\r\nContent-ID: <logo@x>`
  const BY_ID = { html: '<img src="cid:logo@x">' }
  const IMAGE_URL = 'https://app.example/i/logo.png'
  const at = (location: string) => `Content-Type: image/png\r\nContent-Location: ${location}`

  it.each([
    // The bytes decide about the type.
    ['image/png', byId('image/x-png'), IMAGE, BY_ID],
    ['image/png', byId('application/octet-stream; name=logo'), IMAGE, BY_ID],
    ['image/png', byId('image/svg+xml'), IMAGE, BY_ID],
    ['image/png', byId('text/html; name=logo.html'), IMAGE, BY_ID],
    ['image/png', byId('text/plain'), IMAGE, BY_ID],
    ['image/jpeg', byId('image/pjpeg'), Buffer.from('ffd8ffe000104a464946', 'hex'), BY_ID],
    ['image/gif', byId('image/png'), 'GIF89a', BY_ID],
    ['image/webp', byId('image/jpeg'), 'RIFF\0\0\0\0WEBPVP8 ', BY_ID],
    ['image/bmp', byId('image/x-ms-bmp'), 'BM\x01\0\0\0\0\0\0\0', BY_ID],
    // A Content-Location is an absolute URL, or relative to that of the HTML or of a multipart.
    ['image/png', at(IMAGE_URL), IMAGE, { html: `<img src="${IMAGE_URL}">` }],
    [
      'image/png',
      at('https://app.example/\r\n i/\r\n logo.png'),
      IMAGE,
      { html: `<img src="${IMAGE_URL}">` },
    ],
    ['image/png', at('logo.png'), IMAGE, { html: '<img src="logo.png">' }],
    ['image/png', at('i/logo.png'), IMAGE, { html: '<base href="i/"><img src="./logo.png">' }],
    [
      'image/png',
      at('logo.png'),
      IMAGE,
      { html: `<img src="${IMAGE_URL}">`, header: `Content-Location: ${IMAGE_URL}\r\n` },
    ],
    [
      'image/png',
      at(IMAGE_URL),
      IMAGE,
      { html: '<img src="logo.png">', header: `Content-Location: ${IMAGE_URL}\r\n` },
    ],
    ['image/png', at('cid:logo@x'), IMAGE, BY_ID],
    // Not an image.
    [null, byId('image/png'), '<svg xmlns="http://www.w3.org/2000/svg"/>', BY_ID],
    [null, byId('image/png'), '<html>GIF89a', BY_ID],
    [null, byId('image/png'), '', BY_ID],
    [null, at('logo.png'), IMAGE, { html: `<img src="cid:logo.png">` }],
  ])('shows an image of the mail as %s: %s', async (type, partHeader, image, rest) => {
    const { url, blocked } = await ticketFor(await received(related(partHeader, image, rest)))
    expect(blocked).toBe(0)
    const src = type === null ? '' : ` src="data:${type};base64,${base64(image)}"`
    expect((await load(url)).text).toContain(`<body><img${src}>`)
  })

  it('loads images of the web only if it is asked to', async () => {
    const message = await received(htmlMail('<img src="http://x.example/1"><img src="https://x.example/2">'))
    const blocking = await ticketFor({ ...message, remote: false })
    expect(blocking.blocked).toBe(2)
    expect((await load(blocking.url)).text).not.toContain('x.example')
    const loading = await ticketFor({ ...message, remote: true })
    expect(loading.blocked).toBe(0)
    const { headers, text } = await load(loading.url)
    expect(text).toContain('<img src="http://x.example/1"><img src="https://x.example/2">')
    expect(headers.get('content-security-policy')).toContain(
      "default-src 'none'; img-src data: https: http:;",
    )
    expect(headers.get('referrer-policy')).toBe('no-referrer')
  })

  it('needs a key that may read the message', async () => {
    const message = await received(htmlMail('x'))
    expectProblem(await ask(message, mayfly, { authorization: '' }), { status: 401, code: 'invalid-api-key' })
    const admin = await issueKey(mayfly, { scopes: ['admin'] })
    expectProblem(await ask(message, withKey(mayfly, admin)), { status: 403, code: 'missing-scope' })
    const reading = await issueKey(mayfly, { scopes: ['read'], environment: 'development' })
    expect((await ask(message, withKey(mayfly, reading))).status).toBe(201)
    const elsewhere = await issueKey(mayfly, { scopes: ['read'], environment: 'staging' })
    expectProblem(await ask(message, withKey(mayfly, elsewhere)), { status: 404, code: 'not-found' })
    const { key } = await openAccount(mayfly.operator, { plan: 'enterprise' })
    const other = await issueKey(withKey(mayfly, key), { scopes: ['read'], environment: 'development' })
    expectProblem(await ask(message, withKey(mayfly, other)), { status: 404, code: 'not-found' })
  })

  it('needs the password of a protected inbox', async () => {
    const inbox = await createInbox(mayfly, { password_protected: true })
    const { password } = inbox as unknown as { password: string }
    const headers = { 'mayfly-inbox-password': password }
    await send(mayfly, inbox.address, htmlMail('guarded'))
    const path = `/v1/inboxes/${inbox.id}/messages/wait?timeout=20`
    const { body: found } = await call<{ id: string }>(mayfly, 'GET', path, { headers })
    const message = { inbox_id: inbox.id, message_id: found.id }
    expectProblem(await ask(message), { status: 403, code: 'inbox-password-required' })
    const { body } = await ask(message, mayfly, headers)
    expect((await load(body.url)).text).toContain('guarded')
  })

  it.each([
    [{ inbox_id: 1, message_id: 'x' }, 400, 'invalid-request'],
    [{ inbox_id: 'x', message_id: 'x', remote: 'yes' }, 400, 'invalid-request'],
    [{ inbox_id: 'x', message_id: 'x', url: 'http://x' }, 400, 'invalid-request'],
    [{}, 400, 'invalid-request'],
    [{ inbox_id: '../x', message_id: '../x' }, 404, 'not-found'],
  ])('refuses %j: %i %s', async (body, status, code) => {
    expectProblem(await ask(body), { status, code })
  })

  it('refuses a message that has no HTML, or too complex HTML', async () => {
    const plain = await received(mail('plain'))
    expectProblem(await ask(plain), { status: 404, code: 'not-found', detail: /has no HTML/ })
    const deep = await received(htmlMail('<div>\r\n'.repeat(1_000)))
    expectProblem(await ask(deep), { status: 422, code: 'html-too-complex' })
    const unknown = { ...plain, message_id: deep.message_id }
    expectProblem(await ask(unknown), { status: 404, code: 'not-found' })
  })

  it('says in the frame that a URL does not work', async () => {
    const { url } = await ticketFor(await received(htmlMail('x')))
    const changed = url.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
    for (const path of [
      changed,
      '/console/render/x',
      `/console/render/${'x'.repeat(5_000)}`,
      '/console/render/..%2f..%2fetc',
    ]) {
      expect(await load(path)).toMatchObject({ status: 404, text: expect.stringMatching(TITLE) as unknown })
    }
    expect(await load(`${url}?a=<script>`)).toMatchObject({
      status: 400,
      text: expect.not.stringContaining('<script') as unknown,
    })
    expect((await load(url)).status).toBe(200)
  })

  /** Each ends the access of its target. */
  const holders = {
    'an API key': async () => {
      const key = await issueKey(mayfly, { scopes: ['read'], environment: 'development' })
      return [withKey(mayfly, key), () => call(mayfly, 'DELETE', `/v1/keys/${key.id}`)] as const
    },
    'a session of the console': async () => {
      const session = await signIn(mayfly)
      return [await session.target(), () => session.ask(['DELETE', '/console/session'])] as const
    },
    'an inbox token': async (inboxId: string) => {
      const path = `/v1/inboxes/${inboxId}/tokens`
      const { id, token } = await create<{ id: string; token: string }>(mayfly, path, {})
      return [{ ...mayfly, apiKey: token }, () => call(mayfly, 'DELETE', `${path}/${id}`)] as const
    },
  }
  it.each(Object.entries(holders))('ends a URL with %s that asked for it', async (_, makeHolder) => {
    const message = await received(htmlMail('only for holders'))
    const [holder, end] = await makeHolder(message.inbox_id)
    const [kept, ended] = [(await ask(message, holder)).body, (await ask(message, holder)).body]
    expect(await load(kept.url)).toMatchObject({ status: 200 })
    await end()
    const { status, text } = await load(ended.url)
    expect([status, text]).toEqual([404, expect.not.stringContaining('only for holders')])
    expect(text).toContain('The key or session that opened the message has ended.')
  })

  it('shares its thread with searches for expressions in large mail', async () => {
    const small = await startMayfly({ isOneProcess: true, env: { MAYFLY_MEMORY_MIB: '512' } })
    try {
      const inbox = await inboxWith(small, htmlMail(`<p>${'large\r\n'.repeat(50_000)}</p>`))
      const { id } = only(await messagesOf(small, inbox.id, 1))
      const path = `/v1/inboxes/${inbox.id}/messages/${id}?extract=large&raw=false`
      const show = { inbox_id: inbox.id, message_id: id }
      const rounds = Array.from({ length: 3 }, () => [ask(show, small), call(small, 'GET', path)])
      const answers = await Promise.all(rounds.flat())
      expect(answers.map(({ status }) => status)).toEqual([201, 200, 201, 200, 201, 200])
    } finally {
      await small.dispose()
    }
  })

  it('says in the frame that the inbox has ended', async () => {
    const message = await received(htmlMail('x'))
    const { url } = await ticketFor(message)
    await call(mayfly, 'DELETE', `/v1/inboxes/${message.inbox_id}`)
    const { status, headers, text } = await load(url)
    expect([status, headers.get('content-type')]).toEqual([410, 'text/html; charset=utf-8'])
    expect(text).toContain('<title>The inbox has been deleted</title>')
  })
})
