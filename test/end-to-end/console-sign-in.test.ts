import { basename } from 'node:path'
import { issueKey, openAccount, withKey, type KeyJson } from '#test/harness/accounts.js'
import { call, createInbox, mail, only, send, type Answer, type Target } from '#test/harness/client.js'
import { askConsole, secretIn, signIn, type ConsoleSession, type TokenJson } from '#test/harness/console.js'
import { listen } from '#test/harness/event-stream.js'
import { distributedEnvironment, engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { speakHttp } from '#test/harness/wire.js'

interface LinkJson {
  url: string
  expires_at: string
}

interface SessionJson {
  id: string
  created_at: string
  expires_at: string
  key_id: string
  current: boolean
}

const trade = ['POST', '/console/session'] as const
const list = ['GET', '/console/sessions'] as const

/** Creates a link. Resolves with its secret. */
async function newLink(target: Target): Promise<string> {
  const { body } = await call<LinkJson>(target, 'POST', '/console/links')
  return secretIn(body.url)
}

function attempt(target: Target, secret: string): Promise<Answer<TokenJson>> {
  return askConsole(target, null, ['POST', '/console/sign-in'], { body: { secret } })
}

async function openWaits(target: Target): Promise<number> {
  const { body } = await call<string>(target, 'GET', '/metrics')
  return Number(/^mayfly_open_waits (\d+)$/m.exec(body)?.[1] ?? NaN)
}

const statusOf = async (target: Target, path = '/v1/inboxes') => (await call(target, 'GET', path)).status
const isSignedIn = async (session: ConsoleSession) => (await session.ask(list)).status === 200

function expectNotSignedIn(answer: Answer<unknown>): void {
  expectProblem(answer, { status: 401, code: 'not-signed-in' })
}

describe('the sign-in of the console', () => {
  let mayfly: Mayfly
  /** The first key of an account of its own, with the scope `admin` only. */
  let admin: Target
  let adminKeyId: string

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
  })
  afterAll(() => mayfly.dispose())
  beforeEach(async () => {
    const { key } = await openAccount(mayfly, { plan: 'enterprise' })
    admin = withKey(mayfly, key)
    adminKeyId = key?.id ?? ''
  })

  describe('with a link', () => {
    it('works once', async () => {
      const { status, body } = await call<LinkJson>(admin, 'POST', '/console/links')
      expect(status).toBe(201)
      expect(body.url).toMatch(new RegExp(`^${mayfly.url}/console#sign-in=acc_[0-9a-z]{26}\\.[\\w-]{43}$`))
      const leftMs = Date.parse(body.expires_at) - Date.now()
      expect(Math.round(leftMs / 60_000)).toBe(10)
      const session = await signIn(admin, secretIn(body.url))
      expect(await isSignedIn(session)).toBe(true)
      expectProblem(await attempt(admin, secretIn(body.url)), { status: 401, code: 'sign-in-failed' })
      expect(await isSignedIn(session)).toBe(true)
    })

    it('works once even if two browsers open it at the same time', async () => {
      const secret = await newLink(admin)
      const answers = await Promise.all([1, 2, 3, 4].map(() => attempt(admin, secret)))
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401])
      expect(await (await signIn(admin)).ask(list)).toMatchObject({ body: [{}, {}] })
    })

    it('is created by a key of scope admin only', async () => {
      const key = await issueKey(admin, { scopes: ['inboxes', 'read', 'audit'] })
      const refused = await call(withKey(admin, key), 'POST', '/console/links')
      expectProblem(refused, { status: 403, code: 'missing-scope' })
      const headers = { authorization: '' }
      expectProblem(await call(admin, 'POST', '/console/links', { headers }), {
        status: 401,
        code: 'invalid-api-key',
      })
    })

    it('fails after the key that created it is revoked', async () => {
      const key = await issueKey(admin, { scopes: ['admin'] })
      const secret = await newLink(withKey(admin, key))
      await call(admin, 'DELETE', `/v1/keys/${key.id}`)
      expectProblem(await attempt(admin, secret), { status: 401, code: 'sign-in-failed' })
    })

    it('gives a repeated request of it the same link', async () => {
      const headers = { 'idempotency-key': 'the-same' }
      const [first, repeat] = [
        await call<LinkJson>(admin, 'POST', '/console/links', { headers }),
        await call<LinkJson>(admin, 'POST', '/console/links', { headers }),
      ]
      expect(repeat.body).toEqual(first.body)
    })
  })

  describe('of a browser that has a session', () => {
    const attemptWith = (session: ConsoleSession, secret: string, body: object = {}) =>
      session.ask(['POST', '/console/sign-in'], { body: { secret, ...body } })
    const otherAccount = async () =>
      withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise', name: 'Theirs' })).key)
    const otherKey = async () => withKey(admin, await issueKey(admin, { scopes: ['admin'] }))

    test.each([
      { what: 'a link of another account', by: otherAccount, secretOf: newLink },
      { what: 'a link of another key', by: otherKey, secretOf: newLink },
      { what: 'a key of another account', by: otherAccount, secretOf: ({ apiKey }: Target) => apiKey },
    ])('replaces it by $what only if the request says so', async ({ by, secretOf }) => {
      const session = await signIn(admin)
      const secret = await secretOf(await by())
      const refused = await attemptWith(session, secret)
      expectProblem(refused, {
        status: 409,
        code: 'already-signed-in',
        detail:
          /^This browser is signed in to the account Acme \(acc_\w+\) with the key .+\. The link or key signs in to/,
      })
      expect(refused.headers.get('set-cookie')).toBeNull()
      expect((await attemptWith(session, secret, { replace: false })).status).toBe(409)
      expect((await attemptWith(session, secret, { replace: true })).status).toBe(200)
      expect(await isSignedIn(session)).toBe(true)
    })

    it('replaces it by a link of its own key, and one that has ended by any', async () => {
      const session = await signIn(admin)
      expect((await attemptWith(session, await newLink(admin))).status).toBe(200)
      await session.ask(['DELETE', '/console/session'])
      expect((await attemptWith(session, await newLink(await otherAccount()))).status).toBe(200)
    })
  })

  describe('with a key', () => {
    it('works if the key has the scope admin', async () => {
      const session = await signIn(admin)
      const listed = only((await session.ask<SessionJson[]>(list)).body)
      expect(listed).toMatchObject({ id: session.id, key_id: adminKeyId, current: true })
      expect(Date.parse(listed.expires_at) - Date.parse(listed.created_at)).toBe(12 * 3_600_000)
    })

    test.each([
      { what: 'an unknown key', secret: 'mf_development_unknown', code: 'sign-in-failed' },
      { what: 'nothing', secret: '', code: 'sign-in-failed' },
      { what: 'the id of an account', secret: 'acc_01h455vb4pex5vsknk084sn02q', code: 'sign-in-failed' },
      {
        what: 'an unknown link',
        secret: `acc_01h455vb4pex5vsknk084sn02q.${'a'.repeat(43)}`,
        code: 'sign-in-failed',
      },
    ])('fails with $what', async ({ secret, code }) => {
      const answer = await attempt(admin, secret)
      expectProblem(answer, { status: 401, code })
      expect(answer.headers.get('set-cookie')).toBeNull()
    })

    it('fails without the scope admin, and after the key is revoked', async () => {
      const reader = await issueKey(admin, { scopes: ['inboxes', 'audit'] })
      expectProblem(await attempt(admin, reader.secret), { status: 403, code: 'missing-scope' })
      const revoked = await issueKey(admin, { scopes: ['admin'] })
      await call(admin, 'DELETE', `/v1/keys/${revoked.id}`)
      expectProblem(await attempt(admin, revoked.secret), { status: 401, code: 'sign-in-failed' })
    })

    test.each([
      { what: 'no secret', body: {} },
      { what: 'a number as the secret', body: { secret: 1 } },
      { what: 'a secret of 301 characters', body: { secret: 'a'.repeat(301) } },
      { what: 'an unknown property', body: { secret: 'a', more: 1 } },
    ])('fails with $what', async ({ body }) => {
      const answer = await askConsole(admin, null, ['POST', '/console/sign-in'], { body })
      expectProblem(answer, { status: 400, code: 'invalid-request' })
    })

    /** An attempt from another loopback address, since attempts of one address are paced. */
    const attemptFrom = async (localAddress: string, secret: string) => {
      const head = `POST /console/sign-in HTTP/1.1\r\nHost: ${new URL(mayfly.url).host}\r\nOrigin: ${mayfly.url}`
      const sent = JSON.stringify({ secret })
      const lengths = `Content-Type: application/json\r\nContent-Length: ${sent.length}`
      return only(await speakHttp(mayfly, `${head}\r\n${lengths}\r\n\r\n${sent}`, { localAddress }))
    }

    it('works for more browsers at once than an account can have sessions', async () => {
      const addresses = Array.from({ length: 150 }, (_, count) => `127.0.0.${11 + (count % 3)}`)
      const answers = await Promise.all(addresses.map((address) => attemptFrom(address, admin.apiKey)))
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect((await (await signIn(admin)).ask<SessionJson[]>(list)).body).toHaveLength(50)
    })

    it('fails for an address that has failed too often', async () => {
      const guess = (secret: string) => attemptFrom('127.0.0.7', secret)
      for (let count = 0; count < 20; count += 1) expect((await guess('wrong')).status).toBe(401)
      const refused = await guess(admin.apiKey)
      expectProblem(refused, { status: 429, code: 'rate-limited' })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await attempt(admin, admin.apiKey)).status).toBe(200)
    })
  })

  it('sets a cookie that only requests of the console to this host have', async () => {
    const answer = await attempt(admin, admin.apiKey)
    expect(answer.headers.get('set-cookie')).toMatch(
      /^mayfly-session=acc_[0-9a-z]{26}\.[\w-]{43}; Path=\/console; Max-Age=43[12]\d\d; HttpOnly; SameSite=Strict$/,
    )
    expect(answer.body).toEqual({
      session: { id: expect.stringMatching(/^ses_/) as string, expires_at: expect.any(String) as string },
      environments: ['production'],
    })
  })

  describe('a session', () => {
    it('is traded for a token that has access to one environment', async () => {
      const staging = withKey(admin, await issueKey(admin))
      const inbox = await createInbox(staging)
      const session = await signIn(admin)
      const { status, body } = await session.ask<TokenJson>(trade, { body: { environment: 'staging' } })
      expect(status).toBe(200)
      expect(body).toMatchObject({
        environment: 'staging',
        environments: ['production', 'staging'],
        session: { id: session.id },
        account: { name: 'Acme', plan: 'enterprise' },
      })
      expect(Math.round((Date.parse(body.expires_at) - Date.now()) / 60_000)).toBe(10)
      const inStaging = { ...admin, apiKey: body.token }
      expect(await statusOf(inStaging, `/v1/inboxes/${inbox.id}`)).toBe(200)
      expect((await createInbox(inStaging)).state).toBe('active')
      const inProduction = await session.target()
      expect((await call(inProduction, 'GET', `/v1/inboxes/${inbox.id}`)).status).toBe(404)
      expectProblem(await session.ask(trade, { body: { environment: 'unknown' } }), {
        status: 400,
        code: 'invalid-request',
        at: [{ pointer: '/environment' }],
      })
    })

    it('has the scopes inboxes, audit and admin, and no access to other accounts', async () => {
      const token = await (await signIn(mayfly)).target()
      expect(await statusOf(token, '/v1/keys')).toBe(200)
      expect(await statusOf(token, '/v1/usage')).toBe(200)
      expect(await statusOf(token, '/v1/accounts')).toBe(403)
      const operator = { name: 'x', environment: 'staging', scopes: ['operator'] }
      expect((await call(token, 'POST', '/v1/keys', { body: operator })).status).toBe(403)
    })

    it('is limited to 1,200 requests a minute, and is no use of its key', async () => {
      const session = await signIn(admin)
      const token = await session.target()
      const { headers } = await call(token, 'GET', '/v1/inboxes')
      expect(headers.get('ratelimit-policy')).toContain('"sustained";q=1200;w=60')
      expect(headers.get('x-ratelimit-remaining')).toBe('1199')
      // Usage is counted in order, so the request after those of the session shows that they are not.
      const reader = await issueKey(admin, { scopes: ['admin'] })
      const { body: before } = await call<KeyJson>(withKey(admin, reader), 'GET', `/v1/keys/${adminKeyId}`)
      await until('the usage of the other key', async () => {
        const { body } = await call<KeyJson>(withKey(admin, reader), 'GET', `/v1/keys/${reader.id}`)
        return (body.usage?.requests ?? 0) > 0
      })
      const { body: after } = await call<KeyJson>(withKey(admin, reader), 'GET', `/v1/keys/${adminKeyId}`)
      expect(after.usage?.requests ?? 0).toBeLessThanOrEqual((before.usage?.requests ?? 0) + 1)
      expect(after.last_used_at).toBe(before.last_used_at)
    })

    test.each([
      { what: 'no token', token: 'mfs_' },
      { what: 'a made-up token', token: `mfs_${'a'.repeat(80)}.${'b'.repeat(43)}` },
    ])('is not needed for a 401: $what', async ({ token }) => {
      expectProblem(await call({ ...admin, apiKey: token }, 'GET', '/v1/inboxes'), {
        status: 401,
        code: 'invalid-api-key',
      })
    })

    it('ends when its user signs out, with its tokens, and the cookie is removed', async () => {
      const session = await signIn(admin)
      const token = await session.target()
      const answer = await session.ask(['DELETE', '/console/session'])
      expect(answer.status).toBe(204)
      expect(answer.headers.get('set-cookie')).toMatch(/^mayfly-session=; Path=\/console; Max-Age=0; /)
      expectNotSignedIn(await session.ask(trade, { body: {} }))
      expectProblem(await call(token, 'GET', '/v1/inboxes'), { status: 401, code: 'invalid-api-key' })
    })

    it('can be ended from another one, and by signing out everywhere', async () => {
      const sessions = [await signIn(admin), await signIn(admin), await signIn(admin)] as const
      const [own, second, third] = sessions
      const link = await newLink(admin)
      const listed = (await own.ask<SessionJson[]>(list)).body
      expect(listed.map(({ id }) => id)).toEqual([third.id, second.id, own.id])
      expect((await own.ask(['DELETE', `/console/sessions/${second.id}`])).status).toBe(204)
      expect(await Promise.all(sessions.map(isSignedIn))).toEqual([true, false, true])
      expect((await own.ask(['DELETE', `/console/sessions/${second.id}`])).status).toBe(204)
      expect((await own.ask(['DELETE', '/console/sessions'])).status).toBe(204)
      expect(await Promise.all(sessions.map(isSignedIn))).toEqual([false, false, false])
      expectProblem(await attempt(admin, link), { status: 401, code: 'sign-in-failed' })
    })

    it('of another account can’t be seen or ended', async () => {
      const { key } = await openAccount(mayfly, { plan: 'enterprise' })
      const [own, foreign] = [await signIn(admin), await signIn(withKey(mayfly, key))]
      expect((await own.ask<SessionJson[]>(list)).body.map(({ id }) => id)).toEqual([own.id])
      for (const id of [foreign.id, 'ses_01h455vb4pex5vsknk084sn02q', 'x']) {
        expectProblem(await own.ask(['DELETE', `/console/sessions/${id}`]), {
          status: 404,
          code: 'not-found',
        })
      }
      expect(await isSignedIn(foreign)).toBe(true)
    })

    it('ends with the key that started it', async () => {
      const key = await issueKey(admin, { scopes: ['admin'] })
      const session = await signIn(withKey(admin, key))
      const token = await session.target()
      await call(admin, 'DELETE', `/v1/keys/${key.id}`)
      expectNotSignedIn(await session.ask(trade, { body: {} }))
      expect(await statusOf(token)).toBe(401)
      const other = await signIn(admin)
      expect((await other.ask<SessionJson[]>(list)).body.map(({ id }) => id)).toEqual([other.id])
    })

    it('ends its open waits and streams within a second', async () => {
      const secondsToTheEnd = async () => {
        const session = await signIn(admin)
        const token = await session.target()
        const inbox = await createInbox(token)
        const stream = await listen(token, `/v1/inboxes/${inbox.id}/events`)
        const wait = call(token, 'GET', `/v1/inboxes/${inbox.id}/messages/wait?timeout=55`)
        await until('the wait', async () => (await openWaits(mayfly)) === 1)
        const startedAtMs = performance.now()
        await (await signIn(admin)).ask(['DELETE', `/console/sessions/${session.id}`])
        expect((await wait).status).toBe(401)
        await stream.end()
        return (performance.now() - startedAtMs) / 1_000
      }
      // Without a check of the session, they would notice only after five and ten seconds. A busy machine delays some.
      await until('both to end in time', async () => (await secondsToTheEnd()) < 4.5)
    })
  })

  it('needs the cookie, which no other path accepts', async () => {
    const session = await signIn(admin)
    for (const cookie of [null, '', 'mayfly-session=', `other=${session.cookie}`, 'mayfly-session=x']) {
      expectNotSignedIn(await askConsole(mayfly, cookie, trade, { body: {} }))
    }
    const value = session.cookie.split('=')[1] ?? ''
    const withCookie = { authorization: '', cookie: session.cookie }
    expect((await call(admin, 'GET', '/v1/inboxes', { headers: withCookie })).status).toBe(401)
    expect((await call({ ...admin, apiKey: value }, 'GET', '/v1/inboxes')).status).toBe(401)
    const others = await askConsole(mayfly, `a=1; ${session.cookie}; b=2`, list)
    expect(others.status).toBe(200)
  })

  describe('a request of another site', () => {
    const own = () => new URL(mayfly.url).host

    test.each([
      { what: 'without Origin', headers: () => ({ origin: null }) },
      { what: 'with the Origin null', headers: () => ({ origin: 'null' }) },
      { what: 'of another Origin', headers: () => ({ origin: 'https://evil.example' }) },
      { what: 'of another port', headers: () => ({ origin: 'http://127.0.0.1:1' }) },
      { what: 'of another scheme', headers: () => ({ origin: `https://${own()}` }) },
      { what: 'of another site', headers: () => ({ 'sec-fetch-site': 'cross-site' }) },
      { what: 'of the same site', headers: () => ({ 'sec-fetch-site': 'same-site' }) },
      { what: 'of no page', headers: () => ({ 'sec-fetch-site': 'none' }) },
      {
        what: 'to a name that resolves to this host',
        headers: () => ({ host: 'evil.example', origin: 'http://evil.example' }),
      },
      {
        what: 'to a name that looks like this host',
        headers: () => ({ host: '127.0.0.1.evil.example', origin: 'http://127.0.0.1.evil.example' }),
      },
      { what: 'to no valid host', headers: () => ({ host: 'a b', origin: 'http://a b' }) },
    ] as { what: string; headers: () => Record<string, string | null> }[])(
      'is refused $what',
      async ({ headers }) => {
        const { cookie } = await signIn(admin)
        const refused = { status: 403, code: 'untrusted-origin' }
        const body = { secret: admin.apiKey }
        const sent = { headers: headers() }
        const requests = [trade, ['DELETE', '/console/session'], ['DELETE', '/console/sessions']] as const
        for (const each of requests) expectProblem(await askConsole(mayfly, cookie, each, sent), refused)
        const signingIn = await askConsole(mayfly, null, ['POST', '/console/sign-in'], { body, ...sent })
        expectProblem(signingIn, refused)
        expect((await askConsole(mayfly, cookie, list)).status).toBe(200)
      },
    )

    it('is refused if it only reads', async () => {
      const { cookie } = await signIn(admin)
      for (const headers of [
        { origin: 'https://evil.example' },
        { 'sec-fetch-site': 'cross-site' },
        { host: 'evil.example' },
      ]) {
        const answer = await askConsole(mayfly, cookie, list, { headers })
        expectProblem(answer, { status: 403, code: 'untrusted-origin' })
      }
    })

    test.each(['localhost:8080', 'mayfly.localhost', '[::1]:3000', '127.0.0.2'])(
      'is not one to %s, since that is this machine',
      async (host) => {
        const headers = { host, origin: `http://${host}` }
        const answer = await askConsole(mayfly, null, ['POST', '/console/sign-in'], {
          body: { secret: admin.apiKey },
          headers,
        })
        expect(answer.status).toBe(200)
      },
    )
  })

  it('leaves no secret in the log, nor in anything else that is printed', async () => {
    const link = await newLink(admin)
    const session = await signIn(admin, link)
    const { apiKey: token } = await session.target()
    await attempt(admin, link)
    await session.ask(['DELETE', '/console/session'])
    const last = await call(admin, 'GET', '/v1/account')
    const requestId = last.headers.get('x-request-id') ?? ''
    const printed = await until('the log line of the last request', () => {
      const { stdout, stderr } = mayfly.output()
      return (stdout + stderr).includes(requestId) && stdout + stderr
    })
    expect(printed).toContain('/console/sign-in')
    const secrets = [link, session.cookie.split('=')[1] ?? '', token].map(
      (secret) => secret.split('.')[1] ?? '',
    )
    for (const secret of secrets) {
      expect(secret).toHaveLength(43)
      expect(printed).not.toContain(secret)
    }
  })

  it('lasts when Mayfly starts again', async () => {
    const session = await signIn(admin)
    const link = await newLink(admin)
    const ended = await signIn(admin)
    await ended.ask(['DELETE', '/console/session'])
    await mayfly.end('SIGTERM')
    mayfly = await mayfly.restart()
    const after = { ...admin, url: mayfly.url }
    const isActive = async ({ cookie }: ConsoleSession) =>
      (await askConsole(after, cookie, list)).status === 200
    expect(await isActive(session)).toBe(true)
    expect(await isActive(ended)).toBe(false)
    expect((await signIn(after, link)).id).toMatch(/^ses_/)
  })
})

describe('the console behind TLS', () => {
  let mayfly: Mayfly
  const host = 'mayfly.example'
  const headers = { host, origin: `https://${host}` }

  beforeAll(async () => {
    mayfly = await startMayfly({ env: { MAYFLY_PUBLIC_URL: `https://${host}` } })
  })
  afterAll(() => mayfly.dispose())

  it('has a cookie that is only sent over TLS, and links to its public URL', async () => {
    const { body } = await call<LinkJson>(mayfly, 'POST', '/console/links')
    expect(body.url).toMatch(/^https:\/\/mayfly\.example\/console#sign-in=/)
    const given = { body: { secret: secretIn(body.url) }, headers }
    const answer = await askConsole(mayfly, null, ['POST', '/console/sign-in'], given)
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(
      /^__Secure-mayfly-session=[^;]+; Path=\/console; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    )
    const [pair = ''] = cookie.split(';')
    expect((await askConsole(mayfly, pair, trade, { body: {}, headers })).status).toBe(200)
  })

  it('is served at its public URL only', async () => {
    for (const other of ['localhost', '127.0.0.1', `${host}:8443`]) {
      const sent = { body: { secret: mayfly.apiKey }, headers: { host: other, origin: `https://${other}` } }
      expectProblem(await askConsole(mayfly, null, ['POST', '/console/sign-in'], sent), {
        status: 403,
        code: 'untrusted-origin',
      })
    }
  })
})

describe('the time of a session', () => {
  const minutes = (count: number) => count * 60_000
  const start = Date.now()
  let mayfly: MayflyWithClock
  let folder: Awaited<ReturnType<typeof makeFolder>>

  beforeEach(async () => {
    folder = await makeFolder()
    const isDistributed = engineUnderTest() === 'distributed'
    mayfly = await startWithClock(
      folder.path,
      start,
      isDistributed ? distributedEnvironment(basename(folder.path)) : {},
    )
  })
  afterEach(async () => {
    await mayfly.close()
    await folder.remove()
  })

  it('of a link is ten minutes', async () => {
    const secrets = [await newLink(mayfly), await newLink(mayfly)] as const
    await mayfly.setClock(start + minutes(10) - 1)
    expect((await attempt(mayfly, secrets[0])).status).toBe(200)
    await mayfly.setClock(start + minutes(10))
    expectProblem(await attempt(mayfly, secrets[1]), { status: 401, code: 'sign-in-failed' })
  })

  it('is twelve hours, and of its token ten minutes, which streams outlast', async () => {
    const session = await signIn(mayfly)
    const token = await session.target()
    const inbox = await call<{ id: string; address: string }>(mayfly, 'POST', '/v1/inboxes', {
      body: { duration: '24h' },
    })
    const { id, address } = inbox.body
    const stream = await listen(token, `/v1/inboxes/${id}/events`)
    await mayfly.setClock(start + minutes(10))
    expect(await statusOf(token)).toBe(401)
    expect(await statusOf(await session.target())).toBe(200)
    await send(mayfly, address, mail('After the token'))
    await stream.count(1)

    await mayfly.setClock(start + minutes(12 * 60) - 1)
    expect(await isSignedIn(session)).toBe(true)
    const last = await session.target()
    const wait = call(last, 'GET', `/v1/inboxes/${id}/messages/wait?timeout=55&subject=never`)
    await send(mayfly, address, mail('At last'))
    await stream.count(2)
    expect(stream.isOver()).toBe(false)
    await mayfly.setClock(start + minutes(12 * 60))
    expectProblem(await wait, { status: 401, code: 'invalid-api-key' })
    await stream.end()
    expectNotSignedIn(await session.ask(trade, { body: {} }))
  })
})
