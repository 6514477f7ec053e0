import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

const FIRST_KEY = 'the-key-of-the-first-account'
/** Well-formed, but no key has it. */
const MISTYPED = `mf_development_${'a'.repeat(32)}_000000`

describe('access', () => {
  let mayfly: Mayfly
  let first: Target
  let second: Target

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, apiKey: FIRST_KEY })
    first = mayfly
    const { key } = await openAccount(mayfly)
    second = withKey(mayfly, await issueKey(withKey(mayfly, key)))
  })
  afterAll(() => mayfly.dispose())

  const PATHS: [method: string, path: string][] = [
    ['POST', '/v1/inboxes'],
    ['GET', '/v1/inboxes'],
    ['GET', '/v1/inboxes/x'],
    ['DELETE', '/v1/inboxes/x'],
    ['GET', '/v1/inboxes/x/messages'],
    ['GET', '/v1/inboxes/x/messages/y'],
    ['GET', '/v1/inboxes/x/messages/y/raw'],
    ['GET', '/v1/inboxes/x/messages/y/attachments/0'],
    ['DELETE', '/v1/inboxes/x/messages/y'],
    ['POST', '/v1/emails'],
    ['GET', '/v1/emails/x'],
    ['GET', '/v1/usage'],
    ['GET', '/v1/usage/report?label=run:42'],
    ['GET', '/v1/usage/export'],
    ['GET', '/v1/nothing'],
    ['PUT', '/v1/inboxes'],
  ]

  it.each(PATHS)('requires a key: %s %s', async (method, path) => {
    const response = await fetch(mayfly.url + path, { method })
    const body: unknown = await response.json()
    const answer = { status: response.status, headers: response.headers, body }
    expectProblem(answer, { status: 401, code: 'missing-api-key' })
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
  })

  it.each(['/healthz', '/readyz', '/metrics', '/problems/not-found'])('requires no key: %s', async (path) => {
    expect((await fetch(mayfly.url + path)).status).toBe(200)
  })

  it.each([
    { authorization: 'Bearer unknown' },
    { authorization: `Bearer ${MISTYPED}`, detail: /mistyped/ },
    { authorization: `Bearer ${FIRST_KEY}x` },
    { authorization: `Bearer ${FIRST_KEY.toUpperCase()}` },
    { authorization: `Bearer ${FIRST_KEY} ${FIRST_KEY}` },
    { authorization: `Bearer ${FIRST_KEY},` },
    { authorization: `Bearer ${'x'.repeat(5_000)}` },
    { authorization: 'Bearer' },
    { authorization: 'Bearer \u00e9\u00e8' },
    { authorization: FIRST_KEY },
    { authorization: `Basic ${Buffer.from(`${FIRST_KEY}:`).toString('base64')}` },
    { authorization: `Token ${FIRST_KEY}` },
    { authorization: 'Bearer __proto__' },
  ])('refuses Authorization: $authorization', async ({ authorization, detail }) => {
    const answer = await call(first, 'GET', '/v1/inboxes', { headers: { authorization } })
    expectProblem(answer, {
      status: 401,
      code: 'invalid-api-key',
      ...(detail === undefined ? {} : { detail }),
    })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
    expect(JSON.stringify(answer.body)).not.toContain(FIRST_KEY)
  })

  it.each([`bearer ${FIRST_KEY}`, `BEARER   ${FIRST_KEY}`])(
    'accepts Authorization: %s',
    async (authorization) => {
      expect((await call(first, 'GET', '/v1/inboxes', { headers: { authorization } })).status).toBe(200)
    },
  )

  it.each([
    { name: 'a malformed body', options: { body: '{' } },
    { name: 'a body of another type', options: { body: 'x', headers: { 'content-type': 'text/plain' } } },
    { name: 'a large body', options: { body: ' '.repeat(300_000) } },
    { name: 'an unknown parameter', options: { headers: { accept: 'text/html' } } },
  ])('is checked before $name', async ({ options }) => {
    const headers = { ...('headers' in options ? options.headers : {}), authorization: 'Bearer unknown' }
    const answer = await call(first, 'POST', '/v1/inboxes?nope=1', { ...options, headers })
    expectProblem(answer, { status: 401, code: 'invalid-api-key' })
  })

  it("gives the same answer for another account's inbox as for an unknown one", async () => {
    const inbox = await inboxWith(first, mail('private'))
    const message = only(await messagesOf(first, inbox.id, 1))
    const ended = await createInbox(first)
    expect((await call(first, 'DELETE', `/v1/inboxes/${ended.id}`)).status).toBe(200)
    const unknown = 'inb_01h455vb4pex5vsknk084sn02q'
    const tails: [string, string][] = [
      ['GET', ''],
      ['GET', '/messages'],
      ['GET', '/messages?cursor=garbage'],
      ['GET', `/messages/${message.id}`],
      ['GET', `/messages/${message.id}/raw`],
      ['GET', `/messages/${message.id}/attachments/0`],
      ['DELETE', `/messages/${message.id}`],
      ['DELETE', ''],
    ]
    for (const [method, tail] of tails) {
      const asked = await Promise.all(
        [inbox.id, ended.id, unknown].map(async (id) => {
          const answer = await call(second, method, `/v1/inboxes/${id}${tail}`)
          const { request_id: _, ...problem } = expectProblem(answer, { status: 404, code: 'not-found' })
          return JSON.stringify(problem).replaceAll(id, '<id>')
        }),
      )
      expect(new Set(asked).size).toBe(1)
    }
    expect((await call(first, 'GET', `/v1/inboxes/${inbox.id}/messages/${message.id}`)).status).toBe(200)
  })

  it('lists only the inboxes of the account and environment of the key', async () => {
    const labels = { story: 'tenants' }
    const [mine, theirs] = [await createInbox(first, { labels }), await createInbox(second, { labels })]
    for (const query of ['limit=1000', 'label=story:tenants']) {
      const ids = async (target: Target) =>
        (await call<InboxJson[]>(target, 'GET', `/v1/inboxes?${query}`)).body.map(({ id }) => id)
      const [ofFirst, ofSecond] = [await ids(first), await ids(second)]
      expect(ofFirst).toContain(mine.id)
      expect(ofFirst).not.toContain(theirs.id)
      expect(ofSecond).toContain(theirs.id)
      expect(ofSecond).not.toContain(mine.id)
    }
  })

  it('never logs a key', async () => {
    await call(first, 'GET', '/v1/inboxes')
    const { stdout, stderr } = mayfly.output()
    for (const key of [FIRST_KEY, second.apiKey]) expect(stdout + stderr).not.toContain(key)
  })
})
