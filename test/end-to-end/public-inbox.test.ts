import type { Document } from '#apps/api/openapi/openapi-json.js'
import { call, createInbox, mail, messagesOf, only, send, type InboxJson } from '#test/harness/client.js'
import { askConsole } from '#test/harness/console.js'
import { Contract } from '#test/harness/contract.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

interface PublicInboxJson {
  inbox: InboxJson
  token: string
}

const PUBLIC = { MAYFLY_PUBLIC_INBOX: 'true', MAYFLY_TRUSTED_PROXIES: '2' }
const PUBLIC_ACCOUNT = 'acc_00000000000000000000000000'

/** Visitors have addresses of their own, so that tests don't use up each other's limits. */
let visitors = 0
const newVisitor = () => `198.51.100.${(visitors += 1)}`

/** Creates a public inbox without a key, through two proxies that give the visitor's address. */
async function createOn({ url }: Mayfly, body: object = {}, visitor = newVisitor()) {
  const answer = await fetch(`${url}/public/inboxes`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `${visitor}, 10.0.0.9` },
    body: JSON.stringify(body),
  })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as PublicInboxJson }
}

describe('a public inbox', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({
      env: {
        ...PUBLIC,
        MAYFLY_MAIL_DOMAIN: 'work.test',
        MAYFLY_PUBLIC_INBOX_DOMAIN: 'Anyone.test',
        MAYFLY_PUBLIC_INBOXES_PER_ADDRESS: '5',
        MAYFLY_CORS_ORIGINS: 'https://app.example',
        MAYFLY_ABUSE_CONTACT: 'https://abuse.example/?a=1&b=',
      },
    })
  })
  afterAll(() => mayfly.dispose())

  const create = (body?: object, visitor?: string) => createOn(mayfly, body, visitor)

  it('is created without a key, and read and erased with its token alone', async () => {
    const { status, headers, body } = await create({ duration: '10m' })
    expect(status).toBe(201)
    const contract = new Contract((await call<Document>(mayfly, 'GET', '/openapi.json')).body)
    contract.check({ method: 'POST', path: '/public/inboxes', status, headers, body })
    const { inbox, token } = body
    expect(inbox).toMatchObject({ duration: '10m', environment: 'public', labels: {}, name: null })
    expect(inbox.address).toMatch(/^[0-9a-z]{20}@anyone\.test$/)
    const lifeMs = Date.parse(inbox.expires_at) - Date.parse(inbox.created_at)
    expect(lifeMs).toBe(600_000)

    await send(mayfly, inbox.address, mail('Welcome', 'Your code is 493201.'))
    const holder = { ...mayfly, apiKey: token }
    expect(only(await messagesOf(holder, inbox.id, 1)).subject).toBe('Welcome')

    const other = (await create()).body.inbox
    expectProblem(await call(holder, 'GET', `/v1/inboxes/${other.id}`), { status: 404, code: 'not-found' })
    expectProblem(await call(holder, 'POST', '/v1/inboxes'), { status: 403, code: 'missing-scope' })
    expectProblem(await call(holder, 'GET', '/v1/messages'), { status: 403, code: 'missing-scope' })
    expect((await call(holder, 'DELETE', `/v1/inboxes/${inbox.id}`)).status).toBe(200)
    expectProblem(await call(holder, 'GET', `/v1/inboxes/${inbox.id}`), {
      status: 410,
      code: 'inbox-deleted',
    })
  })

  it.each(['10m', '1h', '1d'])('lives for %s', async (duration) => {
    expect((await create({ duration })).body.inbox.duration).toBe(duration)
  })

  it.each([
    { duration: '2d' },
    { duration: '30d' },
    { duration: 60 },
    { address: 'postmaster' },
    { name: 'x' },
  ])('is not created with %j', async (body) => {
    expectProblem(await create(body), { status: 400, code: 'invalid-request' })
  })

  it('belongs to an account on the plan free, without a key', async () => {
    const { inbox } = (await create()).body
    expectProblem(await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`), { status: 404, code: 'not-found' })
    const { body: account } = await call(mayfly, 'GET', `/v1/accounts/${PUBLIC_ACCOUNT}`)
    expect(account).toMatchObject({ id: PUBLIC_ACCOUNT, plan: 'free', environments: [] })
  })

  it('belongs to an account that can be suspended, but not closed', async () => {
    const post = (action: string) => call(mayfly, 'POST', `/v1/accounts/${PUBLIC_ACCOUNT}/${action}`)
    expectProblem(await post('close'), {
      ...{ status: 400, code: 'invalid-request', at: [{ parameter: 'accountId' }] },
    })
    await post('suspend')
    expectProblem(await create(), { status: 403, code: 'account-suspended' })
    await post('resume')
    expect((await create()).status).toBe(201)
  })

  it('leaves the domain of other inboxes alone', async () => {
    const { address } = await createInbox(mayfly)
    expect(address).toMatch(/@work\.test$/)
    const [local = ''] = address.split('@')
    await expect(send(mayfly, `${local}@anyone.test`, mail('For nobody'))).rejects.toThrow('550')
    const { inbox } = (await create()).body
    const [own = ''] = inbox.address.split('@')
    await expect(send(mayfly, `${own}@work.test`, mail('For nobody'))).rejects.toThrow('550')
  })

  it('is limited by the address that the outermost trusted proxy gives', async () => {
    const visitor = newVisitor()
    for (let count = 0; count < 5; count += 1) expect((await create({}, visitor)).status).toBe(201)
    const refused = await create({}, visitor)
    expectProblem(refused, { status: 429, code: 'rate-limited' })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3_000)
    // What the visitor itself has sent stands before the address that the proxy adds.
    expectProblem(await create({}, `203.0.113.7, ${visitor}`), { status: 429, code: 'rate-limited' })
    expect((await create()).status).toBe(201)
    // Addresses of one IPv6 network count as one.
    for (let count = 0; count < 5; count += 1) await create({}, `2001:db8:0:7::${count + 1}`)
    expectProblem(await create({}, '2001:db8:0:7::ffff'), { status: 429, code: 'rate-limited' })
    expect((await create({}, '2001:db8:0:8::1')).status).toBe(201)
  })

  describe('for a page', () => {
    /** As the public page sends it, with headers that replace those of a browser. */
    const post = (headers: Record<string, string | null>) =>
      askConsole(mayfly, null, ['POST', '/public/inboxes'], {
        headers: { 'x-forwarded-for': `${newVisitor()}, 10.0.0.9`, ...headers },
      })

    it.each([
      { what: 'of another site', origin: 'https://other.example', 'sec-fetch-site': 'cross-site' },
      {
        what: 'of another site, in an older browser',
        origin: 'https://other.example',
        'sec-fetch-site': null,
      },
      { what: 'of another port', origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' },
      { what: 'without an origin', origin: 'null', 'sec-fetch-site': null },
      {
        what: 'at a name that resolves to this host',
        host: 'evil.example',
        origin: 'http://evil.example',
        'sec-fetch-site': 'same-origin',
      },
    ])(
      '$what is not created, since it would use up the limit of its visitors',
      async ({ what: _, ...headers }) => {
        expectProblem(await post(headers), { status: 403, code: 'untrusted-origin' })
      },
    )

    it.each(['cross-site', null])('of an allowed origin is created if Sec-Fetch-Site is %s', async (site) => {
      const answer = await post({ origin: 'https://app.example', 'sec-fetch-site': site })
      expect(answer.status).toBe(201)
      expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
    })

    it('of this server is created, and for a program, unless it names another host', async () => {
      expect((await post({})).status).toBe(201)
      const program = { origin: null, 'sec-fetch-site': null }
      expect((await post(program)).status).toBe(201)
      expectProblem(await post({ ...program, host: 'evil.example' }), {
        status: 403,
        code: 'untrusted-origin',
      })
    })
  })

  it('has a page that search engines leave out, with the contact for abuse', async () => {
    const page = await fetch(`${mayfly.url}/`)
    expect(page.headers.get('x-robots-tag')).toBe('noindex')
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(await page.text()).toContain('content="https://abuse.example/?a=1&amp;b="')
  })
})

describe('all public inboxes together', () => {
  it('are limited', async () => {
    const mayfly = await startMayfly({ env: { ...PUBLIC, MAYFLY_PUBLIC_INBOXES_PER_HOUR: '3' } })
    try {
      for (let count = 0; count < 3; count += 1) expect((await createOn(mayfly)).status).toBe(201)
      expectProblem(await createOn(mayfly), { status: 429, code: 'rate-limited' })
    } finally {
      await mayfly.dispose()
    }
  })
})

describe('without MAYFLY_PUBLIC_INBOX', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it('there is no public inbox', async () => {
    const answer = await fetch(`${mayfly.url}/public/inboxes`, { method: 'POST' })
    expect(answer.status).toBe(404)
    const page = await fetch(`${mayfly.url}/`, { redirect: 'manual' })
    expect(page.headers.get('location')).toBe('/console')
  })
})

describe('the first start with MAYFLY_PUBLIC_INBOX', () => {
  it('gives the first key an account of its own', async () => {
    const mayfly = await startMayfly({ env: PUBLIC, isOneProcess: true })
    try {
      await fetch(`${mayfly.url}/public/inboxes`, { method: 'POST' })
      const { body: accounts } = await call<{ id: string; plan: string }[]>(mayfly, 'GET', '/v1/accounts')
      expect(accounts.map(({ plan }) => plan).sort()).toEqual(['enterprise', 'free'])
      const restarted = await mayfly.end('SIGKILL').then(() => mayfly.restart())
      expect((await createInbox(restarted)).id).toMatch(/^inb_/)
      const again = await fetch(`${restarted.url}/public/inboxes`, { method: 'POST' })
      expect(again.status).toBe(201)
      await restarted.end('SIGKILL')
    } finally {
      await mayfly.dispose()
    }
  })
})
