import { call, createInbox, messagesOf, mail, send, type InboxJson } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

const HOUR_MS = 3_600_000

describe('creating an inbox', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  const create = (body?: unknown, headers?: Record<string, string>) =>
    call<InboxJson>(mayfly, 'POST', '/v1/inboxes', { body, ...(headers === undefined ? {} : { headers }) })

  it('requires no property; the default duration is a day', async () => {
    const { status, headers, body } = await create({})
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^inb_[0-7][0-9a-z]{25}$/) as unknown,
      address: expect.stringMatching(/^[0-9a-hjkmnp-tv-z]{20}@mayfly\.test$/) as unknown,
      state: 'active',
      duration: '24h',
      password_protected: false,
      name: null,
      labels: {},
      environment: 'development',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
      expires_at: new Date(Date.parse(body.created_at) + 24 * HOUR_MS).toISOString(),
      message_count: 0,
      last_message_at: null,
    })
    expect(headers.get('location')).toBe(`/v1/inboxes/${body.id}`)
    const again = await call(mayfly, 'GET', headers.get('location') ?? '')
    expect(again.body).toEqual(body)
    expect(again.headers.get('mayfly-cursor')).toBe(headers.get('mayfly-cursor'))
  })

  it.each([
    { name: 'no body', body: undefined, headers: {} },
    { name: 'no body, said to be JSON', body: undefined, headers: { 'content-type': 'application/json' } },
    { name: 'no body, said to be text', body: '', headers: { 'content-type': 'text/plain' } },
    { name: 'blank JSON', body: ' \r\n', headers: {} },
    {
      name: 'JSON with a charset',
      body: '{}',
      headers: { 'content-type': 'Application/JSON;charset=utf-8' },
    },
  ])('treats as {}: $name', async ({ body, headers }) => {
    expect((await create(body, headers)).status).toBe(201)
  })

  it.each([
    { sent: { duration: '1m' }, answer: { duration: '1m' } },
    { sent: { duration: '90m' }, answer: { duration: '90m' } },
    { sent: { duration: '30d' }, answer: { duration: '30d' } },
    { sent: { duration: '4w' }, answer: { duration: '4w' } },
    { sent: { name: 'Sign-up, 日本 👋' }, answer: { name: 'Sign-up, 日本 👋' } },
    { sent: { name: null }, answer: { name: null } },
    { sent: { password_protected: false }, answer: { password_protected: false } },
    { sent: { labels: { run: '42', Größe: 'ä b' } }, answer: { labels: { run: '42', Größe: 'ä b' } } },
    { sent: { labels: inherited() }, answer: { labels: inherited() } },
    { sent: { labels: pairs(16) }, answer: { labels: pairs(16) } },
    { sent: { labels: { ['👋'.repeat(64)]: '👋'.repeat(128) } }, answer: {} },
    { sent: { labels: kibibyte('runs') }, answer: { labels: kibibyte('runs') } },
  ])('accepts $sent', async ({ sent, answer }) => {
    const { status, body } = await create(sent)
    expect(status).toBe(201)
    expect(body).toMatchObject(answer)
    const again = await call(mayfly, 'GET', `/v1/inboxes/${body.id}`)
    expect(again.body).toEqual(body)
  })

  it('ends when its duration is over, to the millisecond', async () => {
    const { body } = await create({ duration: '2w' })
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(14 * 24 * HOUR_MS)
  })

  it.each(['31d', '5w', '721h', '43201m', '99999999999999w', `${'9'.repeat(400)}m`])(
    'names the limit if %s exceeds it',
    async (duration) => {
      const at = [{ pointer: '/duration' }]
      expectProblem(await create({ duration }), { status: 400, code: 'invalid-request', at, detail: /30d/ })
    },
  )

  it.each(['0m', '59s', '', ' 1h', '1h ', '1H', '1.5h', '-1h', '+1h', '1', 'h', '1h30m', '1h\n', '１h'])(
    'refuses the duration %j',
    async (duration) => {
      const at = [{ pointer: '/duration' }]
      expectProblem(await create({ duration }), { status: 400, code: 'invalid-request', at })
    },
  )

  it.each([
    ...wrong('duration', 1, null, true, [], {}, ['1h']),
    ...wrong('password_protected', 1, null, 'false', 0, [], {}),
    ...wrong('name', 1, false, [], ['a'], {}, 'a'.repeat(201), '\ud800'),
    ...wrong('labels', null, 'a:b', [], ['a'], 1, pairs(17), { a: 1 }, { a: null }, { a: ['b'] }),
    ...wrong('labels', { '': 'x' }, { 'a:b': 'x' }, { ['a'.repeat(65)]: 'x' }, { a: 'x'.repeat(129) }),
    ...wrong('labels', { a: '\ud800' }, { a: '\u0000' }, JSON.parse('{"__proto__":"x"}'), { a: { b: 'c' } }),
    { sent: '{"nope":1}', pointers: ['/nope'] },
    { sent: '{"Duration":"1h"}', pointers: ['/Duration'] },
    { sent: '{"a/b~c":1}', pointers: ['/a~1b~0c'] },
    { sent: '{"__proto__":{"name":"x"}}', pointers: ['/__proto__'] },
    { sent: '{"constructor":1,"toString":2}', pointers: ['/constructor', '/toString'] },
    { sent: '{"constructor":{"prototype":{"x":1}}}', pointers: ['/constructor'] },
    { sent: '{"nope":1,"duration":"x","name":1}', pointers: ['/nope', '/duration', '/name'] },
    { sent: '[]', pointers: [''] },
    { sent: 'null', pointers: [''] },
    { sent: '"x"', pointers: [''] },
    { sent: '1', pointers: [''] },
  ])('refuses $sent, pointing at $pointers', async ({ sent, pointers }) => {
    const problem = expectProblem(await create(sent), { status: 400, code: 'invalid-request' })
    const found = (problem.errors ?? []).map(({ pointer }) => pointer)
    expect([...new Set(found)].sort()).toEqual([...pointers].sort())
  })

  it('names the limit of labels with more than 1 KiB', async () => {
    const at = [{ pointer: '/labels' }]
    const refused = await create({ labels: kibibyte('runs!') })
    expectProblem(refused, {
      status: 400,
      code: 'invalid-request',
      at,
      detail: /at most 1024 bytes in UTF-8/,
    })
  })

  it('gives an address that is not case-sensitive and accepts tags', async () => {
    const { id, address } = await createInbox(mayfly)
    const [local = '', domain = ''] = address.split('@')
    const ways = [address, address.toUpperCase(), `${local}+sign-up@${domain}`, `${local}+a+b@MAYFLY.Test`]
    for (const to of ways) await send(mayfly, to, mail(to))
    const messages = await messagesOf(mayfly, id, ways.length)
    expect(messages.map(({ subject }) => subject)).toEqual(ways)
  })

  it('never gives the same address twice', async () => {
    const inboxes = await Promise.all(Array.from({ length: 100 }, () => createInbox(mayfly)))
    expect(new Set(inboxes.map(({ address }) => address)).size).toBe(100)
    expect(new Set(inboxes.map(({ id }) => id)).size).toBe(100)
  })
})

function pairs(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`label-${index}`, `${index}`]))
}

/** Labels of 1,024 bytes, if `name` has four. */
function kibibyte(name: string): Record<string, string> {
  return { ['👋'.repeat(64)]: '👋'.repeat(128), [name]: 'é'.repeat(126) }
}

/** Names of properties that every object inherits. */
function inherited(): Record<string, string> {
  return { constructor: 'x', toString: 'y', hasOwnProperty: 'z', valueOf: '' }
}

function wrong(property: string, ...values: unknown[]): { sent: string; pointers: string[] }[] {
  return values.map((value) => ({
    sent: JSON.stringify({ [property]: value }),
    pointers: [`/${property}`],
  }))
}
