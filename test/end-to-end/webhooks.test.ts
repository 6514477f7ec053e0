import { randomUUID } from 'node:crypto'
import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import { call, createInbox, nextOf, pagesFrom, type InboxJson, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { registerWebhook, type NewWebhookJson, type WebhookJson } from '#test/harness/webhooks.js'

const URL = 'https://ci.example/mail'
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/
const NOT_FOUND = { status: 404, code: 'not-found' }

describe('webhooks', () => {
  let mayfly: Mayfly
  /** A key of a new account, so that each test can register the maximum of webhooks. */
  let owner: Target
  /** Another key of the same account and environment. */
  let inboxesOnly: Target
  let reader: Target
  let adminOnly: Target

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
    const admin = withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise' })).key)
    const withScopes = async (...scopes: string[]) => withKey(mayfly, await issueKey(admin, { scopes }))
    owner = await withScopes('inboxes', 'admin')
    inboxesOnly = await withScopes('inboxes')
    reader = await withScopes('read')
    adminOnly = await withScopes('admin')
  })
  afterAll(() => mayfly.dispose())

  const pathOf = ({ id }: { id: string }) => `/v1/inboxes/${id}/webhooks`
  const read = (id: string, target = owner) => call<WebhookJson>(target, 'GET', `/v1/webhooks/${id}`)
  const change = (id: string, body: object) =>
    call<WebhookJson>(owner, 'PATCH', `/v1/webhooks/${id}`, { body })
  const rotate = (id: string, body: object = {}, headers: Record<string, string> = {}) =>
    call<NewWebhookJson>(owner, 'POST', `/v1/webhooks/${id}/secret/rotate`, { body, headers })

  describe('of one inbox', () => {
    it.each(['/v1/inboxes', '/v1/emails'])(
      'are registered under %s, with a secret shown once',
      async (family) => {
        const inbox = await createInbox(owner)
        const path = `${family}/${inbox.id}/webhooks`
        const answer = await call<NewWebhookJson>(inboxesOnly, 'POST', path, { body: { url: URL } })
        expect(answer.status).toBe(201)
        const { secret, ...webhook } = answer.body
        expect(secret).toMatch(SECRET)
        expect(answer.headers.get('location')).toBe(`/v1/webhooks/${webhook.id}`)
        expect(webhook).toEqual({
          id: expect.stringMatching(/^whk_[0-7][0-9a-hjkmnp-tv-z]{25}$/) as string,
          url: URL,
          inbox_id: inbox.id,
          events: ['message.received'],
          state: 'active',
          created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) as string,
          disabled_reason: null,
        })
        for (const target of [inboxesOnly, reader]) {
          expect((await read(webhook.id, target)).body).toEqual(webhook)
          expect((await call(target, 'GET', path)).body).toEqual([webhook])
        }
        const { stdout, stderr } = mayfly.output()
        expect(stdout + stderr).not.toContain(secret.slice(6))
      },
    )

    it('belong to that inbox only, and are not listed in the environment', async () => {
      const [one, other] = [await createInbox(owner), await createInbox(owner)]
      const { id } = await registerWebhook(owner, pathOf(one))
      expect((await call(owner, 'GET', pathOf(other))).body).toEqual([])
      const ofAll = await call<WebhookJson[]>(owner, 'GET', '/v1/webhooks?limit=100')
      expect(ofAll.body.map((each) => each.id)).not.toContain(id)
    })

    it('are listed newest first, page by page', async () => {
      const inbox = await createInbox(owner)
      const ids: string[] = []
      for (let made = 0; made < 3; made += 1) ids.push((await registerWebhook(owner, pathOf(inbox))).id)
      const pages = await pagesFrom<WebhookJson>(owner, `${pathOf(inbox)}?limit=2`)
      expect(pages.map(({ body }) => body.map(({ id }) => id))).toEqual([[ids[2], ids[1]], [ids[0]]])
      const upwards = await pagesFrom<WebhookJson>(owner, `${pathOf(inbox)}?limit=1&order=asc`)
      expect(upwards.flatMap(({ body }) => body.map(({ id }) => id))).toEqual(ids)
      const other = `/v1/emails/${inbox.id}/webhooks?limit=1`
      expect(nextOf(await call(owner, 'GET', other))).toMatch(new RegExp(`^/v1/emails/${inbox.id}/webhooks`))
    })

    it('are limited to twenty', async () => {
      const inbox = await createInbox(owner)
      for (let made = 0; made < 20; made += 1) await registerWebhook(owner, pathOf(inbox))
      const full = await call(owner, 'POST', pathOf(inbox), { body: { url: URL } })
      expectProblem(full, {
        status: 400,
        code: 'invalid-request',
        at: [{ pointer: '' }],
        detail: /20 webhooks/,
      })
      const { body } = await call<WebhookJson[]>(owner, 'GET', `${pathOf(inbox)}?limit=1`)
      await call(owner, 'DELETE', `/v1/webhooks/${body[0]?.id ?? ''}`)
      await registerWebhook(owner, pathOf(inbox))
    })

    it('require the scope inboxes or read', async () => {
      const inbox = await createInbox(owner)
      const { id } = await registerWebhook(owner, pathOf(inbox))
      const requests: [Target, string, string, object?][] = [
        [reader, 'POST', pathOf(inbox), { url: URL }],
        [adminOnly, 'POST', pathOf(inbox), { url: URL }],
        [adminOnly, 'GET', pathOf(inbox)],
        [adminOnly, 'GET', `/v1/webhooks/${id}`],
        [adminOnly, 'PATCH', `/v1/webhooks/${id}`, { state: 'disabled' }],
        [adminOnly, 'DELETE', `/v1/webhooks/${id}`],
        [reader, 'PATCH', `/v1/webhooks/${id}`, { state: 'disabled' }],
        [reader, 'DELETE', `/v1/webhooks/${id}`],
        [reader, 'POST', `/v1/webhooks/${id}/secret/rotate`],
      ]
      for (const [target, method, path, body] of requests) {
        const answer = await call(target, method, path, body === undefined ? {} : { body })
        expectProblem(answer, { status: 403, code: 'missing-scope' })
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer error="insufficient_scope"/)
      }
      expect((await read(id)).body.state).toBe('active')
    })

    it('stay readable and removable after its end, but no others can be added', async () => {
      const inbox = await createInbox(owner)
      const { secret: _secret, ...webhook } = await registerWebhook(owner, pathOf(inbox))
      await call(owner, 'DELETE', `/v1/inboxes/${inbox.id}`)
      for (const [method, body] of [['POST', { url: URL }], ['GET']] as const) {
        const answer = await call(owner, method, pathOf(inbox), body === undefined ? {} : { body })
        expectProblem(answer, { status: 410, code: 'inbox-deleted' })
      }
      expect((await read(webhook.id)).body).toEqual(webhook)
      expect((await call(owner, 'DELETE', `/v1/webhooks/${webhook.id}`)).body).toEqual(webhook)
      expectProblem(await read(webhook.id), NOT_FOUND)
    })

    it('require the password of a protected inbox until it ends', async () => {
      const inbox = await createInbox(owner, { password_protected: true })
      const { password } = inbox as InboxJson & { password: string }
      const headers = { 'mayfly-inbox-password': password }
      const made = await call<NewWebhookJson>(owner, 'POST', pathOf(inbox), { body: { url: URL }, headers })
      expect(made.status).toBe(201)
      const path = `/v1/webhooks/${made.body.id}`
      const requests: [method: string, path: string, body?: object][] = [
        ['POST', pathOf(inbox), { url: URL }],
        ['GET', pathOf(inbox)],
        ['GET', path],
        ['PATCH', path, { state: 'disabled' }],
        ['POST', `${path}/secret/rotate`, {}],
        ['DELETE', path],
      ]
      for (const [method, where, body] of requests) {
        const given = body === undefined ? {} : { body }
        expectProblem(await call(owner, method, where, given), {
          status: 403,
          code: 'inbox-password-required',
        })
        const wrong = await call(owner, method, where, {
          ...given,
          headers: { 'mayfly-inbox-password': 'x' },
        })
        expectProblem(wrong, { status: 403, code: 'inbox-password-invalid' })
      }
      expect((await call<WebhookJson>(owner, 'GET', path, { headers })).body.state).toBe('active')
      await call(owner, 'DELETE', `/v1/inboxes/${inbox.id}`)
      expect((await read(made.body.id)).status).toBe(200)
    })
  })

  describe('of a whole environment', () => {
    it('are registered and listed with scope admin, in the environment of the key', async () => {
      const { secret, ...webhook } = await registerWebhook(adminOnly, '/v1/webhooks', {
        events: ['inbox.deleted', 'message.received'],
        start_from: 'beginning',
      })
      expect(secret).toMatch(SECRET)
      expect(webhook).toMatchObject({ inbox_id: null, events: ['inbox.deleted', 'message.received'] })
      const listed = await call<WebhookJson[]>(adminOnly, 'GET', '/v1/webhooks?limit=1')
      expect(listed.body).toEqual([webhook])
      expect((await read(webhook.id, adminOnly)).body).toEqual(webhook)

      const elsewhere = await issueKey(adminOnly, { environment: 'production', scopes: ['admin'] })
      expect((await call(withKey(mayfly, elsewhere), 'GET', '/v1/webhooks')).body).toEqual([])
      expectProblem(await read(webhook.id, withKey(mayfly, elsewhere)), NOT_FOUND)
    })

    it('are refused to keys without that scope', async () => {
      const { id } = await registerWebhook(adminOnly, '/v1/webhooks')
      const requests: [method: string, path: string, body?: object][] = [
        ['POST', '/v1/webhooks', { url: URL }],
        ['GET', '/v1/webhooks'],
        ['GET', `/v1/webhooks/${id}`],
        ['PATCH', `/v1/webhooks/${id}`, { state: 'disabled' }],
        ['POST', `/v1/webhooks/${id}/secret/rotate`],
        ['DELETE', `/v1/webhooks/${id}`],
      ]
      for (const [method, path, body] of requests) {
        const answer = await call(inboxesOnly, method, path, body === undefined ? {} : { body })
        expectProblem(answer, { status: 403, code: 'missing-scope' })
      }
    })

    it('alone can have the events of domains', async () => {
      const body = { url: URL, events: ['message.received', 'domain.lapsed'] }
      const refusal = { status: 400, code: 'invalid-request', at: [{ pointer: '/events' }] }
      const path = pathOf(await createInbox(owner))
      expectProblem(await call(owner, 'POST', path, { body }), refusal)
      const { id } = await registerWebhook(owner, path)
      expectProblem(await change(id, { events: body.events }), refusal)
      const { id: wide } = await registerWebhook(owner, '/v1/webhooks', body)
      expect((await read(wide)).body.events).toEqual(body.events)
    })

    it('are limited to a hundred', async () => {
      const admin = withKey(mayfly, (await openAccount(mayfly)).key)
      const register = () => call(admin, 'POST', '/v1/webhooks', { body: { url: URL } })
      for (let made = 0; made < 100; made += 10) {
        const answers = await Promise.all(Array.from({ length: 10 }, register))
        expect(answers.map(({ status }) => status)).toEqual(Array<number>(10).fill(201))
      }
      expectProblem(await register(), { status: 400, code: 'invalid-request', at: [{ pointer: '' }] })
    })
  })

  it.each([
    { body: {}, at: ['/url'], detail: /url must be a string/ },
    { body: { url: null }, at: ['/url'] },
    { body: { url: 7 }, at: ['/url'] },
    { body: { url: '' }, at: ['/url'] },
    { body: { url: 'ci.example' }, at: ['/url'], detail: /absolute http or https/ },
    { body: { url: 'ftp://ci.example/' }, at: ['/url'] },
    { body: { url: 'https://ci.example/#top' }, at: ['/url'] },
    { body: { url: 'https://user:secret@ci.example/' }, at: ['/url'], detail: /user name/ },
    { body: { url: URL, events: [] }, at: ['/events'] },
    { body: { url: URL, events: 'message.received' }, at: ['/events'] },
    { body: { url: URL, events: ['inbox.created'] }, at: ['/events'], detail: /message\.received/ },
    { body: { url: URL, events: ['inbox.expired', 'inbox.expired'] }, at: ['/events'] },
    { body: { url: URL, events: null }, at: ['/events'] },
    { body: { url: URL, start_from: 'yesterday' }, at: ['/start_from'] },
    { body: { url: URL, start_from: '2026-02-30T00:00:00Z' }, at: ['/start_from'] },
    { body: { url: URL, start_from: 0 }, at: ['/start_from'] },
    { body: { url: URL, secret: 'mine', state: 'active' }, at: ['/secret', '/state'] },
    { body: { url: 'x', events: ['x'], start_from: 'x' }, at: ['/url', '/events', '/start_from'] },
  ])('are refused with $body', async ({ body, at, detail }) => {
    const inbox = await createInbox(owner)
    for (const path of [pathOf(inbox), '/v1/webhooks']) {
      expectProblem(await call(owner, 'POST', path, { body }), {
        status: 400,
        code: 'invalid-request',
        at: at.map((pointer) => ({ pointer })),
        ...(detail === undefined ? {} : { detail }),
      })
    }
  })

  it.each([
    'now',
    'beginning',
    '2026-11-21T08:00:00.123+01:00',
    '9999-12-31T00:00:00Z',
    '0000-01-01T00:00:00Z',
  ])('can start from %s', async (start) => {
    const { id } = await registerWebhook(owner, pathOf(await createInbox(owner)), { start_from: start })
    expect((await read(id)).status).toBe(200)
  })

  describe('that exist', () => {
    let webhook: NewWebhookJson

    beforeEach(async () => {
      webhook = await registerWebhook(owner, pathOf(await createInbox(owner)))
    })

    it('are changed only in the given properties', async () => {
      const { secret: _secret, ...before } = webhook
      const url = 'http://127.0.0.1:9000/hook?a=b'
      expect((await change(webhook.id, { url })).body).toEqual({ ...before, url })
      const events = ['inbox.expired', 'inbox.deleted']
      expect((await change(webhook.id, { events })).body).toEqual({ ...before, url, events })
      expect((await read(webhook.id)).body).toEqual({ ...before, url, events })
      // A change to the current value is accepted too.
      expect((await change(webhook.id, { events, url, state: 'active' })).status).toBe(200)
    })

    it('are disabled and enabled on request', async () => {
      const off = await change(webhook.id, { state: 'disabled' })
      expect(off.body).toMatchObject({ state: 'disabled', disabled_reason: 'by-request' })
      const on = await change(webhook.id, { state: 'active', url: 'http://other.example' })
      expect(on.body).toMatchObject({ state: 'active', disabled_reason: null, url: 'http://other.example' })
    })

    it.each([
      { body: {}, at: [''] },
      { body: { url: null }, at: ['/url'] },
      { body: { url: 'other' }, at: ['/url'] },
      { body: { events: [] }, at: ['/events'] },
      { body: { state: 'gone' }, at: ['/state'] },
      { body: { state: null }, at: ['/state'] },
      { body: { start_from: 'now' }, at: ['/start_from'] },
      { body: { inbox_id: null, disabled_reason: null }, at: ['/inbox_id', '/disabled_reason'] },
    ])('are not changed to $body', async ({ body, at }) => {
      expectProblem(await change(webhook.id, body), {
        status: 400,
        code: 'invalid-request',
        at: at.map((pointer) => ({ pointer })),
      })
      expect((await read(webhook.id)).body.state).toBe('active')
    })

    it('are gone once they are removed', async () => {
      const { secret: _secret, ...before } = webhook
      const answer = await call(owner, 'DELETE', `/v1/webhooks/${webhook.id}`)
      expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: before })
      expectProblem(await read(webhook.id), NOT_FOUND)
      expectProblem(await change(webhook.id, { state: 'active' }), NOT_FOUND)
      expectProblem(await rotate(webhook.id), NOT_FOUND)
      expectProblem(await call(owner, 'DELETE', `/v1/webhooks/${webhook.id}`), NOT_FOUND)
      expect((await call(owner, 'GET', `/v1/inboxes/${webhook.inbox_id ?? ''}/webhooks`)).body).toEqual([])
    })

    it('get another secret by rotation', async () => {
      const { secret: former, ...before } = webhook
      const rotated = await rotate(webhook.id)
      expect(rotated.status).toBe(201)
      const { secret, ...after } = rotated.body
      expect(after).toEqual(before)
      expect(secret).toMatch(SECRET)
      expect(secret).not.toBe(former)
      for (const grace of ['0', '7d', '168h']) {
        expect((await rotate(webhook.id, { grace })).status).toBe(201)
      }
    })

    it('are not rotated with an invalid grace, or one of more than seven days', async () => {
      for (const grace of ['8d', '169h', '', 'long', 5, null]) {
        expectProblem(await rotate(webhook.id, { grace }), {
          status: 400,
          code: 'invalid-request',
          at: [{ pointer: '/grace' }],
        })
      }
    })

    it('are rotated once by a repeated request, and by each of several concurrent ones', async () => {
      const headers = { 'idempotency-key': randomUUID() }
      const first = await rotate(webhook.id, {}, headers)
      const again = await rotate(webhook.id, {}, headers)
      expect(again.headers.get('idempotent-replayed')).toBe('true')
      expect(again.body).toEqual(first.body)
      const answers = await Promise.all(Array.from({ length: 3 }, () => rotate(webhook.id)))
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
      expect(new Set(answers.map(({ body }) => body.secret)).size).toBe(3)
    })
  })

  it('are registered once by a repeated request', async () => {
    const inbox = await createInbox(owner)
    const options = { body: { url: URL }, headers: { 'idempotency-key': randomUUID() } }
    const first = await call<NewWebhookJson>(owner, 'POST', pathOf(inbox), options)
    const again = await call<NewWebhookJson>(owner, 'POST', pathOf(inbox), options)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect({ status: again.status, body: again.body }).toEqual({ status: 201, body: first.body })
    expect((await call<WebhookJson[]>(owner, 'GET', pathOf(inbox))).body).toHaveLength(1)
  })

  it('count against the rate limit', async () => {
    const { headers } = await call(owner, 'GET', '/v1/webhooks')
    expect(headers.get('ratelimit')).toMatch(/^"sustained";r=\d+;t=\d+$/)
  })

  it('are the same after a restart, and removed ones stay removed', async () => {
    const inbox = await createInbox(owner)
    const kept = await registerWebhook(owner, pathOf(inbox), { events: ['inbox.expired'] })
    const removed = await registerWebhook(owner, pathOf(inbox))
    await call(owner, 'DELETE', `/v1/webhooks/${removed.id}`)
    const { body } = await change(kept.id, { state: 'disabled' })
    await mayfly.end('SIGTERM')
    mayfly = await mayfly.restart()
    const { url } = mayfly
    expect((await call({ ...owner, url }, 'GET', pathOf(inbox))).body).toEqual([body])
  })
})
