import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  withKey,
  issueKey,
  openAccount,
  type AccountJson,
  type KeyJson,
  type NewAccountJson,
  type NewKeyJson,
} from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  mail,
  messagesOf,
  only,
  pagesFrom,
  send,
  type Target,
} from '#test/harness/client.js'
import { askConsole, secretIn, signIn } from '#test/harness/console.js'
import { NotStartedError } from '#test/harness/mayfly-process.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

const ID = /^acc_[0-7][0-9a-hjkmnp-tv-z]{25}$/
const UNKNOWN = 'acc_01h455vb4pex5vsknk084sn02q'

describe('accounts', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  it('are opened with the limits of their plan and a first key, which issues others', async () => {
    const answer = await call<NewAccountJson>(mayfly, 'POST', '/v1/accounts', {
      body: { name: 'Acme', plan: 'starter' },
    })
    expect(answer.status).toBe(201)
    const { id, key } = answer.body
    expect(id).toMatch(ID)
    expect(answer.headers.get('location')).toBe(`/v1/accounts/${id}`)
    const { key: _key, ...account } = answer.body
    expect(account).toEqual({
      id,
      name: 'Acme',
      plan: 'starter',
      limits: {
        requests_per_minute: 100,
        account_requests_per_minute: 2_400,
        retention: '30d',
        max_message_bytes: 26_214_400,
        max_messages: 10_000,
        max_inboxes: 25_000,
        max_inboxes_per_day: 250_000,
        max_messages_per_day: 1_000_000,
        max_stored_bytes: 4 * 2 ** 30,
        max_webhooks: 1_000,
        max_domains: 100,
        max_members: 50,
      },
      environments: ['production'],
      sign_in: 'any',
      state: 'active',
      suspended_at: null,
      closed_at: null,
      erased_at: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) as string,
    })
    expect(key).toMatchObject({ environment: 'production', scopes: ['admin'], state: 'active' })
    const admin = withKey(mayfly, key)
    await issueKey(admin, { environment: 'staging' })
    const own = await call(admin, 'GET', '/v1/account')
    expect({ status: own.status, body: own.body }).toEqual({
      status: 200,
      body: { ...account, environments: ['production', 'staging'] },
    })
    const read = await call(mayfly, 'GET', `/v1/accounts/${id}`)
    expect({ status: read.status, body: read.body }).toEqual({ status: 200, body: own.body })
  })

  it('are refused requests and mail while they are suspended, and keep everything', async () => {
    const { id, key } = await openAccount(mayfly)
    const admin = withKey(mayfly, key)
    const caller = withKey(mayfly, await issueKey(admin))
    const inbox = await createInbox(caller)
    const token = await create<{ token: string }>(caller, `/v1/inboxes/${inbox.id}/tokens`, {})
    const holder = { ...caller, apiKey: token.token }
    const read = (target: Target) => call(target, 'GET', `/v1/inboxes/${inbox.id}`)
    const post = (action: string, target: Target = mayfly) =>
      call<AccountJson>(target, 'POST', `/v1/accounts/${id}/${action}`)

    const link = secretIn((await call<{ url: string }>(admin, 'POST', '/console/links')).body.url)
    const session = await signIn(admin)
    const domain = await create<{ name: string }>(admin, '/v1/domains', {
      ...{ hosted: true, environment: 'staging', catch_all: { action: 'create' } },
    })
    const suspended = await post('suspend')
    expect(suspended).toMatchObject({ status: 200, body: { id, state: 'suspended' } })
    expect((await post('suspend')).body).toEqual(suspended.body)
    for (const target of [caller, holder]) {
      expectProblem(await read(target), { status: 403, code: 'account-suspended', detail: new RegExp(id) })
    }
    for (const secret of [admin.apiKey, link]) {
      const answer = await askConsole(mayfly, null, ['POST', '/console/sign-in'], { body: { secret } })
      expectProblem(answer, { status: 403, code: 'account-suspended' })
    }
    const sessions = await session.ask(['GET', '/console/sessions'])
    expectProblem(sessions, { status: 403, code: 'account-suspended' })
    // SMTP reads accounts once a second.
    await until('a refusal by SMTP', () =>
      send(mayfly, inbox.address, mail('late', 'late')).then(
        () => null,
        (error: unknown) => (String(error).includes('550 5.2.1') ? true : null),
      ),
    )
    const unknown = send(mayfly, `someone@${domain.name}`, mail('late', 'late'))
    await expect(unknown).rejects.toThrow('550 5.2.1')

    expect(await post('resume')).toMatchObject({ status: 200, body: { state: 'active', suspended_at: null } })
    // At once, since views that were read before the call refuse nothing.
    await send(mayfly, inbox.address, mail('again', 'again'))
    for (const target of [caller, holder]) expect((await read(target)).status).toBe(200)
    const subjects = (await messagesOf(caller, inbox.id, 1)).map(({ subject }) => subject)
    expect(subjects).toContain('again')
  })

  it('are the reason why mail to a full inbox is refused while they are suspended', async () => {
    const { id, key } = await openAccount(mayfly, { plan: 'enterprise', limits: { max_messages: 1 } })
    const caller = withKey(mayfly, await issueKey(withKey(mayfly, key)))
    const { address } = await createInbox(caller)
    await send(mayfly, address, mail('only', 'only'))
    await until('a full inbox', async () => (await answerToRcpt(mayfly, address)).startsWith('552 5.2.2'))
    await call(mayfly, 'POST', `/v1/accounts/${id}/suspend`)
    await until('a suspension', async () => (await answerToRcpt(mayfly, address)).startsWith('550 5.2.1'))
  })

  it('can be suspended, resumed and closed by operators only, and not by a key of their own', async () => {
    const { id, key } = await openAccount(mayfly)
    const { body: own } = await call<AccountJson>(mayfly, 'GET', '/v1/account')
    for (const action of ['suspend', 'resume', 'close']) {
      const refused = await call(withKey(mayfly, key), 'POST', `/v1/accounts/${id}/${action}`)
      expectProblem(refused, { status: 403, code: 'missing-scope' })
      const missing = await call(mayfly, 'POST', `/v1/accounts/${UNKNOWN}/${action}`)
      expectProblem(missing, { status: 404, code: 'not-found' })
    }
    for (const action of ['suspend', 'close']) {
      const itself = await call(mayfly, 'POST', `/v1/accounts/${own.id}/${action}`)
      expectProblem(itself, { status: 400, code: 'invalid-request', at: [{ parameter: 'accountId' }] })
    }
  })

  it('that have lost their keys get a new one only from an operator', async () => {
    const { id, key } = await openAccount(mayfly)
    const admin = withKey(mayfly, key)
    const inbox = await createInbox(withKey(mayfly, await issueKey(admin)))
    for (const lost of (await call<KeyJson[]>(admin, 'GET', '/v1/keys')).body.toReversed()) {
      await call(admin, 'DELETE', `/v1/keys/${lost.id}`)
    }
    expectProblem(await call(admin, 'GET', '/v1/keys'), { status: 401, code: 'revoked-api-key' })

    const body = { name: 'way back', environment: 'staging', scopes: ['admin', 'inboxes'] }
    const path = `/v1/accounts/${id}/keys`
    const headers = { 'idempotency-key': 'the-way-back' }
    const issued = await call<NewKeyJson>(mayfly, 'POST', path, { body, headers })
    expect(issued).toMatchObject({ status: 201, body: { ...body, state: 'active' } })
    expect(issued.headers.get('location')).toBe(`/v1/keys/${issued.body.id}`)
    const back = withKey(mayfly, issued.body)
    expect((await call(back, 'GET', '/v1/account')).body).toMatchObject({ id })
    expect((await call(back, 'GET', `/v1/inboxes/${inbox.id}`)).status).toBe(200)
    const repeated = await call<NewKeyJson>(mayfly, 'POST', path, { body, headers })
    expect(repeated.body.secret).toBe(issued.body.secret)

    expectProblem(await call(back, 'POST', path, { body }), { status: 403, code: 'missing-scope' })
    const unknown = await call(mayfly, 'POST', `/v1/accounts/${UNKNOWN}/keys`, { body })
    expectProblem(unknown, { status: 404, code: 'not-found', detail: /account/ })
    const wrong = await call(mayfly, 'POST', path, { body: { ...body, scopes: ['everything'] } })
    expectProblem(wrong, { status: 400, code: 'invalid-request' })
  })

  it('on the plan free have no key, and lose API access when they move there', async () => {
    const free = await openAccount(mayfly, { plan: 'free' })
    expect(free).toMatchObject({ key: null, environments: [], limits: { retention: '48h' } })
    const paid = await openAccount(mayfly)
    const admin = withKey(mayfly, paid.key)
    const moved = await call(mayfly, 'PATCH', `/v1/accounts/${paid.id}`, { body: { plan: 'free' } })
    expect(moved).toMatchObject({ status: 200, body: { id: paid.id, plan: 'free', key: null } })
    for (const path of ['/v1/account', '/v1/keys', '/v1/inboxes']) {
      const refused = await call(admin, 'GET', path)
      expectProblem(refused, { status: 403, code: 'plan-lacks-api-access', detail: /free/ })
    }
    await call(mayfly, 'PATCH', `/v1/accounts/${paid.id}`, { body: { plan: 'pro' } })
    expect((await call(admin, 'GET', '/v1/account')).status).toBe(200)
  })

  it('get a key of scope admin if they have none when they move to a plan with API access', async () => {
    const { id } = await openAccount(mayfly, { plan: 'free' })
    const upgrade = () =>
      call<NewAccountJson>(mayfly, 'PATCH', `/v1/accounts/${id}`, { body: { plan: 'pro' } })
    const { body } = await upgrade()
    const admin = withKey(mayfly, body.key)
    expect((await upgrade()).body.key).toBeNull()
    expect((await call(admin, 'DELETE', `/v1/keys/${body.key?.id}`)).status).toBe(200)
    const another = withKey(mayfly, (await upgrade()).body.key)
    expect((await call(another, 'GET', '/v1/account')).body).toMatchObject({ id, plan: 'pro' })
  })

  it('on the plan enterprise can have custom limits, which take effect at once', async () => {
    const counted = { max_webhooks: 5, max_domains: 6, max_members: 7 }
    const daily = { max_inboxes_per_day: 60, max_messages_per_day: 70 }
    const quotas = { max_inboxes: 50, ...daily, max_stored_bytes: 5_000_000_000, ...counted }
    const limits = {
      requests_per_minute: 5_000,
      account_requests_per_minute: 20_000,
      retention: '2h',
      max_messages: 1,
      ...quotas,
    }
    const { id, key, ...account } = await openAccount(mayfly, { plan: 'enterprise', limits })
    expect(account.limits).toEqual({ ...limits, max_message_bytes: 26_214_400 })
    const admin = withKey(mayfly, key)
    const caller = withKey(mayfly, await issueKey(admin))
    expectProblem(await call(caller, 'POST', '/v1/inboxes', { body: { duration: '3h' } }), {
      status: 400,
      code: 'invalid-request',
      detail: /2h/,
    })
    const { address, id: inboxId } = await createInbox(caller)
    await send(caller, address, mail('one'))
    await messagesOf(caller, inboxId, 1)
    await expect(send(caller, address, mail('two'))).rejects.toThrow(/552 5\.2\.2/)

    const path = `/v1/accounts/${id}`
    const larger = await call<AccountJson>(mayfly, 'PATCH', path, { body: { limits: { retention: '4h' } } })
    expect(larger.body.limits).toMatchObject({ requests_per_minute: 1_000_000, retention: '4h' })
    await createInbox(caller, { duration: '3h' })
    const same = await call<AccountJson>(mayfly, 'PATCH', path, { body: { plan: 'enterprise' } })
    expect(same.body.limits).toEqual(larger.body.limits)
    const none = await call<AccountJson>(mayfly, 'PATCH', path, { body: { limits: null } })
    expect(none.body.limits).toMatchObject({ retention: '30d' })
  })

  it('are listed newest first, page by page', async () => {
    const ids: string[] = []
    for (let opened = 0; opened < 3; opened += 1) ids.push((await openAccount(mayfly)).id)
    const pages = await pagesFrom<AccountJson>(mayfly, '/v1/accounts?limit=2')
    const listed = pages.flatMap(({ body }) => body.map(({ id }) => id))
    expect(listed.filter((id) => ids.includes(id))).toEqual(ids.toReversed())
    expect(new Set(listed).size).toBe(listed.length)
    const ascending = await pagesFrom<AccountJson>(mayfly, '/v1/accounts?limit=100&order=asc')
    expect(ascending.flatMap(({ body }) => body.map(({ id }) => id))).toEqual(listed.toReversed())
  })

  it.each([
    { body: {}, at: ['/name', '/plan'] },
    { body: { name: '', plan: 'pro' }, at: ['/name'] },
    { body: { name: 'x'.repeat(201), plan: 'pro' }, at: ['/name'] },
    { body: { name: '\ud800', plan: 'pro' }, at: ['/name'] },
    { body: { name: 'a', plan: 'business' }, at: ['/plan'] },
    { body: { name: 'a', plan: 'constructor' }, at: ['/plan'] },
    { body: { name: 'a', plan: 7 }, at: ['/plan'] },
    { body: { name: 'a', plan: 'pro', limits: { max_messages: 9 } }, at: ['/limits'] },
    { body: { name: 'a', plan: 'enterprise', limits: { max_messages: 0 } }, at: ['/limits'] },
    {
      body: { name: 'a', plan: 'enterprise', limits: { account_requests_per_minute: 2_399 } },
      at: ['/limits'],
    },
    { body: { name: 'a', plan: 'enterprise', limits: { retention: '31d' } }, at: ['/limits'] },
    { body: { name: 'a', plan: 'enterprise', limits: { colour: 1 } }, at: ['/limits'] },
    { body: { name: 'a', plan: 'enterprise', limits: [] }, at: ['/limits'] },
    { body: { name: 'a', plan: 'pro', id: UNKNOWN }, at: ['/id'] },
  ])('are refused with $body', async ({ body, at }) => {
    expectProblem(await call(mayfly, 'POST', '/v1/accounts', { body }), {
      status: 400,
      code: 'invalid-request',
      at: at.map((pointer) => ({ pointer })),
    })
  })

  it.each([
    { body: {}, pointer: '' },
    { body: { plan: 'business' }, pointer: '/plan' },
    { body: { plan: null }, pointer: '/plan' },
    { body: { limits: { max_messages: 9 } }, pointer: '/limits' },
    { body: { plan: 'pro', name: 'b' }, pointer: '/name' },
  ])('are not changed by $body', async ({ body, pointer }) => {
    const { id, key: _key, ...before } = await openAccount(mayfly)
    const path = `/v1/accounts/${id}`
    expectProblem(await call(mayfly, 'PATCH', path, { body }), {
      status: 400,
      code: 'invalid-request',
      at: [{ pointer }],
    })
    expect((await call(mayfly, 'GET', path)).body).toEqual({ id, ...before })
  })

  it("can't remove the API access of their own account", async () => {
    const { body: own } = await call<{ id: string }>(mayfly, 'GET', '/v1/account')
    const refused = await call(mayfly, 'PATCH', `/v1/accounts/${own.id}`, { body: { plan: 'free' } })
    expectProblem(refused, { status: 400, code: 'invalid-request', at: [{ pointer: '/plan' }] })
    expect((await call(mayfly, 'GET', '/v1/account')).status).toBe(200)
  })

  it.each([UNKNOWN, 'x', 'acc_', 'key_01h455vb4pex5vsknk084sn02q'])('are not found as %s', async (id) => {
    const path = `/v1/accounts/${id}`
    expectProblem(await call(mayfly, 'GET', path), { status: 404, code: 'not-found' })
    const changed = await call(mayfly, 'PATCH', path, { body: { plan: 'pro' } })
    expectProblem(changed, { status: 404, code: 'not-found' })
  })

  it.each(['limit=0', 'limit=101', 'limit=x', 'order=up', 'cursor=x', 'cursor=a&cursor=b', 'page=2'])(
    'are not listed with ?%s',
    async (query) => {
      const answer = await call(mayfly, 'GET', `/v1/accounts?${query}`)
      const [parameter = ''] = query.split('=')
      expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter }] })
    },
  )

  it('are only for keys of scope operator', async () => {
    const admin = withKey(mayfly, (await openAccount(mayfly)).key)
    const requests: [string, string][] = [
      ['GET', '/v1/accounts'],
      ['POST', '/v1/accounts'],
      ['GET', `/v1/accounts/${UNKNOWN}`],
      ['PATCH', `/v1/accounts/${UNKNOWN}`],
    ]
    for (const [method, path] of requests) {
      const answer = await call(admin, method, path)
      expectProblem(answer, { status: 403, code: 'missing-scope' })
      expect(answer.headers.get('www-authenticate')).toBe(
        'Bearer error="insufficient_scope", scope="operator"',
      )
    }
  })
})

describe('plans in a file', () => {
  let folder: string
  const plan = { has_api_access: true, requests_per_minute: 60, retention: '2d', max_messages: 7 }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-plans-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function planFile(content: object): Promise<{ MAYFLY_PLANS: string }> {
    const path = join(folder, 'plans.json')
    await writeFile(path, JSON.stringify(content))
    return { MAYFLY_PLANS: path }
  }

  it('replace the default plans; a plan that is removed gives no API access until it is back', async () => {
    const both = { enterprise: plan, business: { ...plan, requests_per_minute: 30 } }
    const mayfly = await startMayfly({ isOneProcess: true, env: await planFile(both) })
    const account = await openAccount(mayfly, { plan: 'business' })
    expect(account.limits).toMatchObject({ requests_per_minute: 30, retention: '2d', max_messages: 7 })
    const path = `/v1/accounts/${account.id}`
    expect((await call(mayfly, 'GET', '/v1/account')).body).toMatchObject({ limits: { retention: '2d' } })
    expect(await mayfly.end('SIGTERM')).toBe(0)

    await planFile({ enterprise: plan })
    const without = await mayfly.restart()
    expectProblem(await call(withKey(without, account.key), 'GET', '/v1/account'), {
      status: 403,
      code: 'plan-lacks-api-access',
      detail: /business/,
    })
    expect((await call(without, 'GET', path)).body).toMatchObject({ plan: 'business', limits: null })
    const logged = await until('the line that says so', () => {
      const { stdout, stderr } = without.output()
      return (stdout + stderr).match(/"plan":"business".*accounts are on a plan that is not configured/g)
    })
    expect(logged).toHaveLength(1)
    const moved = await call<NewAccountJson>(without, 'PATCH', path, { body: { plan: 'enterprise' } })
    expect(moved.body).toMatchObject({ plan: 'enterprise', limits: { requests_per_minute: 60 }, key: null })
    expect((await call(withKey(without, account.key), 'GET', '/v1/account')).status).toBe(200)
    await without.dispose()
  }, 120_000)

  it('are read again at SIGHUP, unless the file has errors', async () => {
    const env = await planFile({ enterprise: plan, business: { ...plan, max_inboxes: 1 } })
    const mayfly = await startMayfly({ isOneProcess: true, env })
    const { key } = await openAccount(mayfly, { plan: 'business' })
    const own = withKey(mayfly, await issueKey(withKey(mayfly, key)))
    const create = async () => (await call(own, 'POST', '/v1/inboxes')).status
    const readAgain = async (content: object, logged: string) => {
      await planFile(content)
      process.kill(mayfly.pid, 'SIGHUP')
      await until(logged, () => Object.values(mayfly.output()).join('').includes(logged))
    }
    expect([await create(), await create()]).toEqual([201, 429])
    await readAgain({ enterprise: plan, business: { ...plan, max_inboxes: 2 } }, 'read the plans again')
    await until('the larger quota', async () => (await create()) === 201)
    expect(await create()).toBe(429)
    await readAgain({ enterprise: { ...plan, price: 9 } }, 'has an unknown property: \\"price\\"')
    expect((await call(own, 'GET', '/v1/account')).status).toBe(200)
    await readAgain({ enterprise: plan }, '"plans":["enterprise"]')
    expect((await call(own, 'GET', '/v1/account')).status).toBe(403)
    await mayfly.dispose()
  })

  it('that are invalid end the start, with each error', async () => {
    const env = await planFile({ enterprise: { ...plan, retention: '1y', price: 9 } })
    const failed = await startMayfly({ isOneProcess: true, env }).then(
      () => null,
      (error: unknown) => error,
    )
    expect(failed).toBeInstanceOf(NotStartedError)
    expect(String(failed)).toMatch(/MAYFLY_PLANS: "enterprise" needs "retention"/)
    expect(String(failed)).toMatch(/MAYFLY_PLANS: "enterprise" has an unknown property: "price"/)
  })
})

describe('the first account', () => {
  it('is the only one of a new installation, on the plan enterprise', async () => {
    const mayfly = await startMayfly({ isOneProcess: true })
    const { body } = await call<AccountJson[]>(mayfly, 'GET', '/v1/accounts')
    expect(only(body)).toMatchObject({ name: 'bootstrap', plan: 'enterprise', environments: ['development'] })
    await mayfly.dispose()
  })
})
