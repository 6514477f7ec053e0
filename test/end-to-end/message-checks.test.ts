import { issueKey, withKey } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  send,
  type Target,
} from '#test/harness/client.js'
import { endpointsPerTest } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

interface HtmlCheckJson {
  supported_percent: number
  warnings: {
    feature: { slug: string; title: string; url: string }
    where: { count: number; positions: { line: number; column: number }[] }
    clients: { name: string; support: string; notes: string[] }[]
  }[]
}

type CheckedLinks = { href: string; status: number | null; error: string | null }[]

function htmlMail(html: string): string {
  return ['Subject: HTML', 'Content-Type: text/html; charset=utf-8', '', html].join('\r\n')
}

/** The path of the only message of a new inbox. */
async function received(target: Target, source: string): Promise<string> {
  const inbox = await inboxWith(target, source)
  return `/v1/inboxes/${inbox.id}/messages/${only(await messagesOf(target, inbox.id, 1)).id}`
}

const NEWSLETTER = [
  '<!doctype html><html><head><style>',
  '.row > td { display: flex }',
  '</style></head><body>',
  '<table><tr class=row><td style="padding: 1px">Hello',
].join('\r\n')

describe('checks of a message', () => {
  const endpoints = endpointsPerTest()
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' } })
  })
  afterAll(() => mayfly.dispose())

  const htmlCheck = (path: string, target: Target = mayfly, headers = {}) =>
    call<HtmlCheckJson>(target, 'GET', `${path}/html-check`, { headers })
  const linkCheck = (path: string, target: Target = mayfly, headers = {}) =>
    call<CheckedLinks>(target, 'POST', `${path}/link-check`, { headers })

  it('say which mail clients support the HTML', async () => {
    const { status, body } = await htmlCheck(await received(mayfly, htmlMail(NEWSLETTER)))
    expect(status).toBe(200)
    expect(body.supported_percent).toBeGreaterThan(50)
    expect(body.supported_percent).toBeLessThan(100)
    const flex = body.warnings.find(({ feature }) => feature.slug === 'css-display-flex')
    expect(flex).toMatchObject({
      feature: { title: 'display:flex', url: 'https://www.caniemail.com/features/css-display-flex/' },
      where: { count: 1, positions: [{ line: 2, column: 13 }] },
    })
    expect(flex?.clients).toContainEqual({ name: 'Outlook (Windows)', support: 'none', notes: [] })
  })

  it('need HTML', async () => {
    const path = await received(mayfly, mail('plain'))
    expectProblem(await htmlCheck(path), { status: 404, code: 'not-found', detail: /has no HTML/ })
  })

  it('refuse HTML that is too complex, and let other requests run meanwhile', async () => {
    const deep = await received(mayfly, htmlMail('<div>\r\n'.repeat(2_000)))
    expectProblem(await htmlCheck(deep), { status: 422, code: 'html-too-complex' })
    const large = await received(mayfly, htmlMail('<b style="a:b;c:1px">\r\n</b>'.repeat(170_000)))
    const progress = { isDone: false }
    const checking = htmlCheck(large).finally(() => (progress.isDone = true))
    let answered = 0
    const [inboxPath = ''] = deep.split('/messages')
    for (; !progress.isDone; answered += 1) expect((await call(mayfly, 'GET', inboxPath)).status).toBe(200)
    expect((await checking).body.supported_percent).toBe(100)
    // If the check blocked the process, one or two would be answered.
    expect(answered).toBeGreaterThan(5)
  })

  it('request each link of the mail', async () => {
    const { url, requests } = await endpoints.start((response, { url: path }) => {
      if (path.endsWith('/old')) response.writeHead(301, { location: '/new' })
      else response.statusCode = path.endsWith('/gone') ? 404 : 200
      response.end()
    })
    const path = await received(
      mayfly,
      htmlMail(
        `<a href="${url}/old">a</a> <a href="${url}/gone">b</a> <a href="mailto:a@b.example">c</a> ${url}/old`,
      ),
    )
    const idempotent = { 'idempotency-key': 'the-same' }
    for (const times of [1, 2]) {
      const { status, body, headers } = await linkCheck(path, mayfly, idempotent)
      expect(status).toBe(200)
      expect(body).toEqual([
        { href: `${url}/old`, status: 200, error: null },
        { href: `${url}/gone`, status: 404, error: null },
      ])
      expect(headers.get('idempotent-replayed')).toBeNull()
      expect(requests.map((request) => `${request.method} ${request.url}`).toSorted()).toEqual(
        ['/hook/gone', '/hook/old', '/new'].flatMap((to) => Array<string>(times).fill(`HEAD ${to}`)),
      )
    }
    expect((await linkCheck(await received(mayfly, mail('no links')))).body).toEqual([])
  })

  it('end with the client, and with the message', async () => {
    const endpoint = await endpoints.start(() => undefined)
    const path = await received(mayfly, mail('a link', `See ${endpoint.url}`))
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${mayfly.apiKey}` }
    const request = { method: 'POST', headers, signal: leaving.signal }
    const left = expect(fetch(`${mayfly.url}${path}/link-check`, request)).rejects.toThrow('abort')
    await until('a request', () => endpoint.requests.length === 1)
    leaving.abort()
    await left
    await until('its end', () => endpoint.connections.open.size === 0)

    const checking = linkCheck(path)
    await until('another request', () => endpoint.requests.length === 2)
    expect((await call(mayfly, 'DELETE', path)).status).toBe(200)
    for (const socket of endpoint.connections.open) socket.destroy()
    expectProblem(await checking, { status: 410, code: 'message-deleted' })
  })

  it('need a key that reads the mail; a token of the inbox can’t request links', async () => {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, htmlMail('<p>Hello'))
    const path = `/v1/inboxes/${inbox.id}/messages/${only(await messagesOf(mayfly, inbox.id, 1)).id}`
    const reader = withKey(mayfly, await issueKey(mayfly, { scopes: ['read'], environment: 'development' }))
    const auditor = withKey(mayfly, await issueKey(mayfly, { scopes: ['audit'], environment: 'development' }))
    const { token } = await create<{ token: string }>(mayfly, `/v1/inboxes/${inbox.id}/tokens`, {
      access: 'owner',
    })
    const holder = { ...mayfly, apiKey: token }
    for (const check of [htmlCheck, linkCheck]) {
      expectProblem(await check(path, auditor), { status: 403, code: 'missing-scope' })
      const other = path.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
      expectProblem(await check(other), { status: 404, code: 'not-found' })
    }
    for (const target of [reader, holder]) {
      expect((await htmlCheck(path, target)).status).toBe(200)
      expectProblem(await linkCheck(path, target), { status: 403, code: 'missing-scope' })
    }
  })

  it('need the password of a protected inbox', async () => {
    const inbox = await create<{ id: string; address: string; password: string }>(mayfly, '/v1/inboxes', {
      password_protected: true,
    })
    await send(mayfly, inbox.address, htmlMail('<p>Hello'))
    const headers = { 'mayfly-inbox-password': inbox.password }
    const messages = await until('the message', async () => {
      const { body } = await call<{ id: string }[]>(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages`, {
        headers,
      })
      return body.length > 0 ? body : null
    })
    const path = `/v1/inboxes/${inbox.id}/messages/${only(messages).id}`
    for (const check of [htmlCheck, linkCheck]) {
      expectProblem(await check(path), { status: 403, code: 'inbox-password-required' })
      expect((await check(path, mayfly, headers)).status).toBe(200)
    }
  })

  it('request no private address by default, and nothing on a server with public inboxes', async () => {
    const endpoint = await endpoints.start()
    const source = mail('a link', `See ${endpoint.url}`)
    const strict = await startMayfly()
    try {
      const { body } = await linkCheck(await received(strict, source), strict)
      expect(body).toEqual([{ href: endpoint.url, status: null, error: 'the host has no public address' }])
    } finally {
      await strict.dispose()
    }
    const open = await startMayfly({
      env: { MAYFLY_PUBLIC_INBOX: 'true', MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' },
    })
    try {
      const path = await received(open, source)
      expectProblem(await linkCheck(path, open), {
        status: 403,
        code: 'link-check-disabled',
        detail: /MAYFLY_PUBLIC_INBOX/,
      })
    } finally {
      await open.dispose()
    }
    expect(endpoint.connections.opened).toBe(0)
  })
})
