import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Document } from '#apps/api/openapi/openapi-json.js'
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
  type InboxJson,
  type ProblemJson,
  type Target,
} from '#test/harness/client.js'
import { listen } from '#test/harness/event-stream.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

interface TokenJson {
  id: string
  access: 'read' | 'owner'
  expires_at: string
  created_at: string
}

type NewTokenJson = TokenJson & { token: string }

const MINUTE_MS = 60_000
const UNKNOWN_INBOX = 'inb_01h455vb4pex5vsknk084sn02q'
const MAX_TOKENS = 100

/** Everything that a token may do, and the access that it needs. */
const ACCEPTED: Readonly<Record<string, 'read' | 'owner'>> = {
  'GET {inbox}': 'read',
  'GET {inbox}/messages': 'read',
  'GET {inbox}/messages/wait': 'read',
  'GET {inbox}/messages/{message_id}': 'read',
  'GET {inbox}/messages/{message_id}/html-check': 'read',
  'GET {inbox}/messages/{message_id}/raw': 'read',
  'GET {inbox}/messages/{message_id}/attachments/{index}': 'read',
  'GET {inbox}/events': 'read',
  'DELETE {inbox}': 'owner',
}

const WITH_ATTACHMENT = [
  'Subject: a file',
  'Content-Type: multipart/mixed; boundary=part',
  '',
  '--part',
  'Content-Type: text/html',
  '',
  '<p>a file</p>',
  '--part',
  'Content-Disposition: attachment; filename=a.txt',
  '',
  'attached',
  '--part--',
  '',
].join('\r\n')

describe('an inbox token', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({
      isOneProcess: true,
      env: { MAYFLY_MCP: 'true', MAYFLY_MAILPIT_API: 'true' },
    })
  })
  afterAll(() => mayfly.dispose())

  const issue = (inboxId: string, body: object = {}, target: Target = mayfly): Promise<NewTokenJson> =>
    create(target, `/v1/inboxes/${inboxId}/tokens`, body)
  const withToken = ({ token }: NewTokenJson): Target => ({ ...mayfly, apiKey: token })
  const revoke = (inboxId: string, id: string) =>
    call<{ id: string; revoked_at: string }>(mayfly, 'DELETE', `/v1/inboxes/${inboxId}/tokens/${id}`)
  const listed = async (inboxId: string) =>
    (await call<TokenJson[]>(mayfly, 'GET', `/v1/inboxes/${inboxId}/tokens`)).body
  const read = (target: Target, inboxId: string) => call<ProblemJson>(target, 'GET', `/v1/inboxes/${inboxId}`)

  describe('as a resource', () => {
    it('is shown once, and is valid until the inbox expires by default', async () => {
      const inbox = await createInbox(mayfly)
      const { token, ...shown } = await issue(inbox.id)
      expect(token).toMatch(new RegExp(`^mft_${inbox.id.slice(4)}_[\\w-]{32}$`))
      expect(shown).toEqual({
        id: expect.stringMatching(/^tok_[0-7][0-9a-hjkmnp-tv-z]{25}$/) as string,
        access: 'read',
        expires_at: inbox.expires_at,
        created_at: expect.stringMatching(/Z$/) as string,
      })
      const { token: other, ...owner } = await issue(inbox.id, { access: 'owner', expires_in: '30m' })
      expect(other).not.toBe(token)
      expect(Date.parse(owner.expires_at) - Date.parse(owner.created_at)).toBe(30 * MINUTE_MS)
      expect(await listed(inbox.id)).toEqual([shown, owner])
      const { stdout, stderr } = mayfly.output()
      expect(stdout + stderr).not.toContain(token)
    })

    it.each([
      [{ access: 'write' }, '/access'],
      [{ access: null }, '/access'],
      [{ expires_in: '30s' }, '/expires_in'],
      [{ expires_in: null }, '/expires_in'],
      [{ expires_in: `${'9'.repeat(20)}d` }, '/expires_in'],
      [{ expires_in: '61m' }, '/expires_in'],
      [{ name: 'x' }, '/name'],
    ])('is not issued for %j', async (body, pointer) => {
      const { id, expires_at } = await createInbox(mayfly, { duration: '1h' })
      const answer = await call(mayfly, 'POST', `/v1/inboxes/${id}/tokens`, { body })
      const problem = expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ pointer }] })
      if (Object.values(body).includes('61m')) expect(problem.detail).toContain(expires_at)
    })

    it('expires with its inbox, if the inbox is shortened', async () => {
      const { id, created_at } = await createInbox(mayfly, { duration: '2h' })
      await issue(id)
      await call(mayfly, 'PATCH', `/v1/inboxes/${id}`, { body: { duration: '1h' } })
      const expires_at = new Date(Date.parse(created_at) + 60 * MINUTE_MS).toISOString()
      expect(only(await listed(id))).toMatchObject({ expires_at })
    })

    it('is revoked at once, and a repeat gets the same answer', async () => {
      const { id } = await createInbox(mayfly)
      const [kept, token] = [await issue(id), await issue(id)]
      expect((await read(withToken(token), id)).status).toBe(200)
      const answer = await revoke(id, token.id)
      expect(answer).toMatchObject({
        status: 200,
        body: { id: token.id, revoked_at: expect.any(String) as string },
      })
      expect((await revoke(id, token.id)).body).toEqual(answer.body)
      const refused = await read(withToken(token), id)
      expectProblem(refused, { status: 401, code: 'revoked-api-key', detail: /was revoked at/ })
      expect(refused.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
      expect((await read(withToken(kept), id)).status).toBe(200)
      expect((await listed(id)).map((each) => each.id)).toEqual([kept.id])
      for (const unknown of ['tok_01h455vb4pex5vsknk084sn02q', 'x']) {
        expectProblem(await revoke(id, unknown), { status: 404, code: 'not-found' })
      }
    })

    it('is issued once if the request is repeated', async () => {
      const { id } = await createInbox(mayfly)
      const headers = { 'idempotency-key': `token-of-${id}` }
      const create = () => call<NewTokenJson>(mayfly, 'POST', `/v1/inboxes/${id}/tokens`, { headers })
      const [first, second] = [await create(), await create()]
      expect(second.body).toEqual(first.body)
      expect(await listed(id)).toHaveLength(1)
    })

    it('needs the scope inboxes, or read to list them, and an inbox that exists', async () => {
      const inbox = await createInbox(mayfly)
      for (const scope of ['read', 'audit', 'admin']) {
        const other = withKey(mayfly, await issueKey(mayfly, { scopes: [scope], environment: 'development' }))
        for (const method of ['POST', 'GET']) {
          const answer = await call(other, method, `/v1/inboxes/${inbox.id}/tokens`)
          if (scope === 'read' && method === 'GET') expect(answer.status).toBe(200)
          else expectProblem(answer, { status: 403, code: 'missing-scope' })
        }
      }
      const elsewhere = withKey(mayfly, await issueKey(mayfly, { environment: 'elsewhere' }))
      for (const [target, id] of [
        [elsewhere, inbox.id],
        [mayfly, UNKNOWN_INBOX],
      ] as const) {
        expectProblem(await call(target, 'POST', `/v1/inboxes/${id}/tokens`), {
          status: 404,
          code: 'not-found',
        })
      }
      await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
      const answer = await call(mayfly, 'POST', `/v1/emails/${inbox.id}/tokens`)
      expectProblem(answer, { status: 410, code: 'inbox-deleted' })
    })

    it('is in the history of the inbox', async () => {
      const { id } = await createInbox(mayfly)
      await revoke(id, (await issue(id)).id)
      const { body } = await call<{ type: string }[]>(mayfly, 'GET', `/v1/inboxes/${id}/history`)
      expect(body.map(({ type }) => type)).toEqual(['inbox.created', 'token.issued', 'token.revoked'])
    })

    it('is one of a limited number', async () => {
      const { id } = await createInbox(mayfly)
      let first: NewTokenJson | undefined
      for (let count = 0; count < MAX_TOKENS; count += 1) {
        const token = await issue(id)
        first ??= token
      }
      const answer = await call(mayfly, 'POST', `/v1/inboxes/${id}/tokens`)
      expectProblem(answer, { status: 400, code: 'invalid-request', detail: /100 valid tokens/ })
      await revoke(id, first?.id ?? '')
      const next = await issue(id)
      expect((await read(withToken(next), id)).status).toBe(200)
      expect(await listed(id)).toHaveLength(MAX_TOKENS)
    })

    it('is issued for each of several concurrent requests', async () => {
      const { id } = await createInbox(mayfly)
      const tokens = await Promise.all(Array.from({ length: 5 }, () => issue(id)))
      const ids = (await listed(id)).map((each) => each.id)
      expect(ids.toSorted()).toEqual(tokens.map((token) => token.id).toSorted())
    })
  })

  describe.each(['read', 'owner'] as const)('with the access %s', (access) => {
    let document: Document
    let own: InboxJson
    let other: InboxJson
    let messageId: string
    let target: Target

    beforeAll(async () => {
      document = (await call<Document>(mayfly, 'GET', '/openapi.json')).body
      own = await inboxWith(mayfly, WITH_ATTACHMENT)
      other = await inboxWith(mayfly, WITH_ATTACHMENT)
      messageId = only(await messagesOf(mayfly, own.id, 1)).id
    })
    beforeEach(useNewToken)

    async function useNewToken(): Promise<void> {
      target = withToken(await issue(own.id, { access }))
    }

    /** Every operation that requires a key, with its inbox as `{inbox}`. */
    const operations = () =>
      Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods)
          .filter(([, { security }]) => security.length > 0)
          .map(([method, { security }]) => ({
            send: `${method.toUpperCase()} ${path.replace(/^\/v1\/(inboxes|emails)\/\{id\}/, '{inbox}')}`,
            family: path.startsWith('/v1/emails') ? 'emails' : 'inboxes',
            documented: security.flatMap(({ inboxToken = [] }) => inboxToken),
          })),
      )
    /** The stream of the inbox would not end, so its headers are read. That of the environment is refused. */
    function request(send: string, family: string, inboxId: string) {
      const [method = '', path = ''] = send.split(' ')
      const values: Record<string, string> = { message_id: messageId, index: '0' }
      const filled = path
        .replace('{inbox}', `/v1/${family}/${inboxId}`)
        .replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? 'x')
      const query = path.endsWith('/wait') ? '?timeout=0' : ''
      return call(target, path === '{inbox}/events' ? 'HEAD' : method, filled + query)
    }

    it('makes the requests for its inbox that it may make, and no other', async () => {
      const all = operations()
      expect(all.length).toBeGreaterThan(40)
      expect(new Set(all.filter(({ send }) => send in ACCEPTED).map(({ send }) => send)).size).toBe(
        Object.keys(ACCEPTED).length,
      )
      for (const [index, { send, family, documented }] of all.entries()) {
        // Three requests for each operation are more than the quota of one token.
        if (index % 20 === 0) await useNewToken()
        const needed = ACCEPTED[send]
        expect({ send, documented }).toEqual({ send, documented: needed === undefined ? [] : [needed] })
        if (send === 'DELETE {inbox}' && access === 'owner') continue
        const isAccepted = needed === 'read' || needed === access
        const answer = await request(send, family, own.id)
        expect({ send, status: answer.status }).toEqual({ send, status: isAccepted ? 200 : 403 })
        if (!isAccepted) expectProblem(answer, { status: 403, code: 'missing-scope' })
        for (const id of [other.id, UNKNOWN_INBOX]) {
          const { status } = await request(send, family, id)
          expect({ send, status }).toEqual({ send, status: send.includes('{inbox}') ? 404 : 403 })
        }
      }
    })

    it('is not accepted elsewhere', async () => {
      for (const [method, path] of [
        ['POST', '/mcp'],
        ['GET', '/api/v1/messages'],
      ] as const) {
        expectProblem(await call(target, method, path), { status: 403, code: 'missing-scope' })
      }
      expectProblem(await call(target, 'GET', '/v1/nothing'), { status: 404, code: 'not-found' })
    })

    it('deletes its inbox only with the access owner, and is answered 410 then', async () => {
      const { id } = await createInbox(mayfly)
      const token = await issue(id, { access })
      const key = { ...mayfly, apiKey: token.token }
      const answer = await call<{ state: string }>(key, 'DELETE', `/v1/inboxes/${id}`)
      if (access === 'read') {
        expectProblem(answer, { status: 403, code: 'missing-scope' })
        await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
      } else {
        expect(answer).toMatchObject({ status: 200, body: { state: 'deleted' } })
        expect((await call(key, 'DELETE', `/v1/inboxes/${id}`)).body).toEqual(answer.body)
      }
      for (const path of ['', '/messages', '/messages/wait', '/events']) {
        const ended = await call(key, 'GET', `/v1/inboxes/${id}${path}`)
        const { detail } = expectProblem(ended, { status: 410, code: 'inbox-deleted' })
        expect(detail.includes(` by ${token.id}, `)).toBe(access === 'owner')
      }
    })
  })

  it.each([
    ['of another inbox', (secret: string, other: string) => `mft_${other.slice(4)}_${secret.slice(-32)}`],
    ['of an unknown inbox', (secret: string) => `mft_${UNKNOWN_INBOX.slice(4)}_${secret.slice(-32)}`],
    ['with another secret', (secret: string) => secret.slice(0, -32) + 'A'.repeat(32)],
    ['that is cut off', (secret: string) => secret.slice(0, -1)],
    ['in upper case', (secret: string) => secret.toUpperCase()],
  ])('is unknown if it is one %s', async (_, change) => {
    const [one, other] = [await createInbox(mayfly), await createInbox(mayfly)]
    const { token } = await issue(one.id)
    await issue(other.id)
    const target = { ...mayfly, apiKey: change(token, other.id) }
    for (const { id } of [one, other]) {
      expectProblem(await read(target, id), { status: 401, code: 'invalid-api-key' })
    }
  })

  it('does not replace the password of a protected inbox', async () => {
    const created = await createInbox(mayfly, { password_protected: true })
    const { id, password } = created as InboxJson & { password: string }
    const headers = { 'mayfly-inbox-password': password }
    const path = `/v1/inboxes/${id}`
    expectProblem(await call(mayfly, 'POST', `${path}/tokens`), {
      status: 403,
      code: 'inbox-password-required',
    })
    const body = { access: 'owner' }
    const { body: token } = await call<NewTokenJson>(mayfly, 'POST', `${path}/tokens`, { body, headers })
    const target = withToken(token)
    expect((await read(target, id)).status).toBe(200)
    for (const [method, tail] of [
      ['GET', '/messages'],
      ['GET', '/events'],
      ['DELETE', ''],
    ] as const) {
      const answer = await call(target, method, path + tail)
      expectProblem(answer, { status: 403, code: 'inbox-password-required' })
    }
    expect((await call(target, 'GET', `${path}/messages`, { headers })).status).toBe(200)
    expect((await call(target, 'DELETE', path, { headers })).status).toBe(200)
  })

  it('has a rate limit of its own', async () => {
    const { id } = await createInbox(mayfly)
    const key = await issueKey(mayfly, { environment: 'development', rate_limit: 10 })
    const token = await issue(id, {}, withKey(mayfly, key))
    const first = await read(withToken(token), id)
    expect(first.headers.get('ratelimit-policy')).toBe('"sustained";q=60;w=60, "burst";q=30;w=600')
    const refused = await until('the end of the quota', async () => {
      const answers = await Promise.all(Array.from({ length: 30 }, () => read(withToken(token), id)))
      return answers.find(({ status }) => status === 429)
    })
    expectProblem(refused, { status: 429, code: 'rate-limited' })
    expect((await read(withKey(mayfly, key), id)).status).toBe(200)
    expect((await read(withToken(await issue(id)), id)).status).toBe(200)
  })

  it('ends its waits and streams when it is revoked, and no others', async () => {
    const { id, address } = await createInbox(mayfly)
    const [token, other] = [await issue(id), await issue(id)]
    const path = `/v1/inboxes/${id}`
    const wait = (target: Target) => call(target, 'GET', `${path}/messages/wait?timeout=50`)
    const [ended, open] = [wait(withToken(token)), wait(withToken(other))]
    const [stream, openStream] = await Promise.all([
      listen(withToken(token), `${path}/events`),
      listen(withToken(other), `${path}/events`),
    ])
    await revoke(id, token.id)
    expectProblem(await ended, { status: 401, code: 'revoked-api-key' })
    expect(await stream.end()).toEqual([])
    await send(mayfly, address, mail('for the others'))
    expect((await open).status).toBe(200)
    expect(await openStream.count(1)).toMatchObject([{ event: 'message.received' }])
    openStream.close()
  })

  it('is answered 410 by a wait, and ends a stream, if the inbox is deleted meanwhile', async () => {
    const { id } = await createInbox(mayfly)
    const target = withToken(await issue(id, { access: 'owner' }))
    const path = `/v1/inboxes/${id}`
    const stream = await listen(target, `${path}/events`)
    const waited = call(target, 'GET', `${path}/messages/wait?timeout=50`)
    await call(target, 'DELETE', path)
    expectProblem(await waited, { status: 410, code: 'inbox-deleted' })
    expect(await stream.end()).toMatchObject([{ event: 'inbox.deleted' }])
  })

  it('is the same after a restart, and after the views are rebuilt', async () => {
    const { id } = await createInbox(mayfly)
    const [kept, revoked, ended] = [await issue(id), await issue(id), await createInbox(mayfly)]
    await revoke(id, revoked.id)
    const past = await issue(ended.id)
    await call(mayfly, 'DELETE', `/v1/inboxes/${ended.id}`)
    const before = await listed(id)
    for (const isRebuilt of [false, true]) {
      await mayfly.end('SIGTERM')
      if (isRebuilt && engineUnderTest() === 'embedded') {
        await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
      }
      mayfly = await mayfly.restart()
      await until('the views', async () => (await call(mayfly, 'GET', '/readyz')).status === 200)
      expect(await listed(id)).toEqual(before)
      expect((await read(withToken(kept), id)).status).toBe(200)
      expectProblem(await read(withToken(revoked), id), { status: 401, code: 'revoked-api-key' })
      expectProblem(await read(withToken(past), ended.id), { status: 410, code: 'inbox-deleted' })
    }
  })
})
