import { call, createInbox, type ProblemJson, type RequestOptions } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem, type ExpectedProblem } from '#test/harness/problem.js'

interface Case extends RequestOptions {
  send: string
  expect: ExpectedProblem & { allow?: string }
}

const JSON_TYPE = { 'content-type': 'application/json' }
const malformed = { status: 400, code: 'malformed-json' }
const notAnObject = { status: 400, code: 'invalid-request', at: [{ pointer: '' }] }
const unknown = { status: 404, code: 'not-found' }
const notTaken = { status: 415, code: 'unsupported-media-type' }

const BODIES: Case[] = [
  { send: 'POST /v1/inboxes', body: '{', expect: malformed },
  { send: 'POST /v1/inboxes', body: '{"name":"a",}', expect: malformed },
  { send: 'POST /v1/inboxes', body: "{'name':'a'}", expect: malformed },
  { send: 'POST /v1/inboxes', body: '{} {}', expect: malformed },
  { send: 'POST /v1/inboxes', body: 'NaN', expect: malformed },
  {
    send: 'POST /v1/inboxes',
    body: Buffer.from('{"name":"\xff"}', 'latin1'),
    headers: JSON_TYPE,
    expect: malformed,
  },
  { send: 'POST /v1/inboxes', body: '\0', expect: malformed },
  { send: 'POST /v1/inboxes', body: nested('[', ']', 100_000), expect: notAnObject },
  {
    send: 'POST /v1/inboxes',
    body: `{"labels":${nested('{"a":', '}', 40_000, '1')}}`,
    expect: { ...notAnObject, at: [{ pointer: '/labels' }] },
  },
  {
    send: 'POST /v1/inboxes',
    body: `{"name":${nested('[', ']', 100_000)}}`,
    expect: { ...notAnObject, at: [{ pointer: '/name' }] },
  },
  { send: 'POST /v1/inboxes', body: nested('[', '', 100_000), expect: malformed },
  {
    send: 'POST /v1/inboxes',
    body: ' '.repeat(300_000),
    expect: { status: 413, code: 'body-too-large', detail: /262144/ },
  },
  { send: 'POST /v1/inboxes', body: '{}', headers: { 'content-type': 'text/plain' }, expect: notTaken },
  {
    send: 'POST /v1/inboxes',
    body: 'a=b',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    expect: notTaken,
  },
  {
    send: 'POST /v1/inboxes',
    body: '{}',
    headers: { 'content-type': 'application/vnd.api+json' },
    expect: notTaken,
  },
  { send: 'POST /v1/inboxes', body: '{}', headers: { 'content-type': 'garbage' }, expect: notTaken },
  {
    send: 'POST /v1/inboxes',
    body: '{}',
    headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
    expect: notTaken,
  },
  {
    send: 'DELETE /v1/inboxes/x',
    body: '{"hard":true}',
    expect: { ...notAnObject, at: [{ pointer: '/hard' }] },
  },
  {
    send: 'DELETE /v1/inboxes/x/messages/y',
    body: '{"a":1}',
    expect: { ...notAnObject, at: [{ pointer: '/a' }] },
  },
  { send: 'DELETE /v1/keys/x', body: '{"a":1}', expect: { ...notAnObject, at: [{ pointer: '/a' }] } },
  { send: 'DELETE /v1/keys/x', body: '[1]', expect: notAnObject },
  { send: 'DELETE /v1/keys/x?a=1', expect: { ...notAnObject, at: [{ parameter: 'a' }] } },
  { send: 'GET /v1/account?a=1', expect: { ...notAnObject, at: [{ parameter: 'a' }] } },
  ...refusedParameters(
    ['inboxes?limit=1&limit=2', 'limit', /^limit must be sent once$/],
    ['inboxes?state=active&state=deleted', 'state', /^state must be sent once$/],
    ['inboxes/x/messages?subject=a&subject=b', 'subject', /^subject must be sent once$/],
    ['inboxes/x/messages?has_code=true&has_code=true', 'has_code', /^has_code must be sent once$/],
    ['usage?from=2026-11-21T08:00:00Z&from=2026-11-21T08:00:00Z', 'from', /^from must be sent once$/],
    ['inboxes/x/messages?header=X', 'header', /^header must be <name>:<text>, with a colon/],
  ),
]

const ROUTES: Case[] = [
  { send: 'GET /unknown', expect: { ...unknown, detail: /at \/unknown\.$/ } },
  { send: 'POST /mcp', expect: { ...unknown, detail: /MAYFLY_MCP=true on the server adds it/ } },
  { send: 'GET /api/v1/messages', expect: { ...unknown, detail: /MAYFLY_MAILPIT_API=true/ } },
  { send: 'POST /public/inboxes', expect: { ...unknown, detail: /MAYFLY_PUBLIC_INBOX=true/ } },
  { send: 'GET /v1', expect: unknown },
  { send: 'GET /v1/', expect: unknown },
  { send: 'GET /v2/inboxes', expect: unknown },
  { send: 'GET /V1/inboxes', expect: unknown },
  { send: 'GET /v1/inboxes/', expect: unknown },
  { send: 'GET /v1/inboxes//messages', expect: unknown },
  { send: 'GET /v1/inboxes;a=b', expect: unknown },
  { send: 'GET /v1/inboxes/inb_01h455vb4pex5vsknk084sn02q', expect: unknown },
  { send: 'GET /v1/inboxes/INB_01H455VB4PEX5VSKNK084SN02Q', expect: unknown },
  { send: 'GET /v1/inboxes/inb_01h455vb4pex5vsknk084sn02q/messages', expect: unknown },
  { send: 'DELETE /v1/inboxes/inb_01h455vb4pex5vsknk084sn02q', expect: unknown },
  { send: 'GET /v1/inboxes/%00', expect: unknown },
  { send: `GET /v1/inboxes/${'a'.repeat(5_000)}`, expect: unknown },
  { send: 'POST /v1/nothing', body: '{', expect: unknown },
  { send: 'POST /v1/nothing', body: 'x', headers: { 'content-type': 'text/plain' }, expect: unknown },
  { send: 'OPTIONS /nothing', expect: unknown },
  { send: 'GET /problems/nothing', expect: unknown },
  { send: 'GET /problems/constructor', expect: unknown },
  { send: 'GET /v1/inboxes/%zz', expect: { status: 400, code: 'invalid-request' } },
  { send: 'GET /v1/inboxes/%ff', expect: { status: 400, code: 'invalid-request' } },
  { send: 'GET /v1/inboxes/%E0%80%AF/messages', expect: { status: 400, code: 'invalid-request' } },
  ...notAllowed('/v1/inboxes', 'GET, HEAD, POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'),
  ...notAllowed('/v1/inboxes/x', 'GET, HEAD, PATCH, DELETE', 'POST', 'PUT', 'OPTIONS'),
  ...notAllowed('/v1/inboxes/x/messages', 'GET, HEAD, POST', 'PUT', 'DELETE', 'OPTIONS'),
  ...notAllowed('/v1/messages', 'GET, HEAD', 'POST', 'DELETE', 'OPTIONS'),
  ...notAllowed('/v1/messages/wait', 'GET, HEAD', 'POST', 'DELETE', 'OPTIONS'),
  ...notAllowed('/v1/events', 'GET, HEAD', 'POST', 'DELETE', 'OPTIONS'),
  ...notAllowed('/v1/emails/x/messages/y', 'GET, HEAD, DELETE', 'POST', 'PATCH'),
  ...notAllowed('/v1/inboxes/x/messages/y/raw', 'GET, HEAD', 'PUT', 'DELETE'),
  ...notAllowed('/v1/inboxes/x/messages/y/attachments/0', 'GET, HEAD', 'POST'),
  ...notAllowed('/v1/inboxes/x/messages/wait', 'GET, HEAD', 'POST', 'DELETE'),
  ...notAllowed('/v1/inboxes/x/tokens', 'GET, HEAD, POST', 'PUT', 'PATCH', 'DELETE'),
  ...notAllowed('/v1/emails/x/tokens/y', 'DELETE', 'GET', 'POST', 'PATCH'),
  ...notAllowed('/healthz', 'GET, HEAD', 'POST', 'OPTIONS'),
  ...notAllowed('/metrics', 'GET, HEAD', 'DELETE'),
  {
    send: 'PUT /v1/inboxes',
    body: '{',
    expect: { status: 405, code: 'method-not-allowed', allow: 'GET, HEAD, POST' },
  },
]

const FORMS: Case[] = [
  'text/html',
  'application/xml',
  'application/json;q=0',
  '*/*;q=0',
  'garbage',
  'application/problem+json',
  'application/json; charset=iso-8859-1',
].map((accept) => ({
  send: 'GET /v1/inboxes',
  headers: { accept },
  expect: { status: 406, code: 'not-acceptable' },
}))

function refusedParameters(
  ...cases: readonly (readonly [path: string, parameter: string, detail: RegExp])[]
): Case[] {
  return cases.map(([path, parameter, detail]) => ({
    send: `GET /v1/${path}`,
    expect: { status: 400, code: 'invalid-request', at: [{ parameter }], detail },
  }))
}

describe('an error', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it.each([...BODIES, ...ROUTES, ...FORMS].map((each) => ({ ...each, name: nameOf(each) })))(
    '$expect.status $expect.code: $name',
    async ({ send, body, headers, expect: { allow, ...expected } }) => {
      const [method = '', path = ''] = send.split(' ')
      const options = {
        ...(body === undefined ? {} : { body }),
        ...(headers === undefined ? {} : { headers }),
      }
      const answer = await call(mayfly, method, path, options)
      expectProblem(answer, expected)
      if (allow !== undefined) expect(answer.headers.get('allow')).toBe(allow)
    },
  )

  it.each([
    'application/json',
    '*/*',
    'application/*',
    'text/html, application/json;q=0.1',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8";q=0.5',
    '',
  ])('is not caused by Accept: %s', async (accept) => {
    expect((await call(mayfly, 'GET', '/v1/inboxes', { headers: { accept } })).status).toBe(200)
  })

  it('has a type that is the URL of a page about it', async () => {
    const { id } = await createInbox(mayfly)
    await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    for (const path of ['/nothing', '/v1/inboxes?x=1', `/v1/inboxes/${id}`]) {
      const { body } = await call<ProblemJson>(mayfly, 'GET', path)
      expect(body.type.startsWith(mayfly.url)).toBe(true)
      const page = await fetch(body.type)
      expect(page.status).toBe(200)
      expect(page.headers.get('content-type')).toMatch(/^text\/html/)
      const text = await page.text()
      for (const said of [body.code, body.title]) expect(text).toContain(said)
    }
  })

  it('has a unique request id, like successful answers', async () => {
    const answers = await Promise.all([
      call(mayfly, 'GET', '/nothing', { headers: { 'x-request-id': 'mine' } }),
      call(mayfly, 'GET', '/nothing'),
      call(mayfly, 'GET', '/v1/inboxes'),
    ])
    const ids = answers.map(({ headers }) => headers.get('x-request-id'))
    expect(new Set(ids).size).toBe(3)
    for (const id of ids) expect(id).toMatch(/^req_\w+$/)
  })

  it('lists a bounded number of faults', async () => {
    const body = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`x${index}`, index]))
    const problem = expectProblem(await call(mayfly, 'POST', '/v1/inboxes', { body }), {
      status: 400,
      code: 'invalid-request',
    })
    expect(JSON.stringify(problem).length).toBeLessThan(10_000)
  })

  it.each([
    { send: 'POST /v1/inboxes', body: '{"\\ud83d":1}', status: 400, code: 'invalid-request' },
    {
      send: `GET /v1/inboxes/${'x'.repeat(59)}${encodeURIComponent('\u{1f98b}')}`,
      status: 404,
      code: 'not-found',
    },
  ])('quotes no lone surrogate of $send', async ({ send, body, ...expected }) => {
    const [method = '', path = ''] = send.split(' ')
    const answer = await call(mayfly, method, path, body === undefined ? {} : { body, headers: JSON_TYPE })
    expect(JSON.stringify(expectProblem(answer, expected))).not.toMatch(/\\ud[89a-f]/)
  })

  it.each(['/v1/inboxes', '/healthz', '/readyz', '/metrics', '/v1/inboxes/x', '/nothing'])(
    'or success: HEAD %s has the headers of GET',
    async (path) => {
      const [get, head] = [await call(mayfly, 'GET', path), await call(mayfly, 'HEAD', path)]
      expect(head.status).toBe(get.status)
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
      expect(head.body).toBe('')
    },
  )
})

function notAllowed(path: string, allow: string, ...methods: string[]): Case[] {
  return methods.map((method) => ({
    send: `${method} ${path}`,
    expect: { status: 405, code: 'method-not-allowed', allow },
  }))
}

function nested(open: string, close: string, depth: number, core = ''): string {
  return open.repeat(depth) + core + close.repeat(depth)
}

function nameOf({ send, body, headers }: Case): string {
  const sent = typeof body === 'string' ? JSON.stringify(body.slice(0, 40)) : ''
  return `${send.slice(0, 60)} ${sent} ${headers === undefined ? '' : Object.values(headers).join(' ')}`
}
