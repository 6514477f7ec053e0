import { issueKey, openAccount, withKey, type AccountJson } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  mail,
  messagesOf,
  pagesFrom,
  send,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import {
  auditLogOf,
  downloadLog,
  type AuditLogJson,
  type DownloadedLog,
} from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

interface EventJson {
  id: string
  type: string
  time: string
  message_id: string | null
}

interface ErasedJson {
  event_id: string
  type: string
  time: string
}

type PastInboxJson = InboxJson & { erased: ErasedJson | null }

interface PastMessageJson {
  id: string
  received_at: string
  size: number
  digest: string
  erased: ErasedJson | null
}

describe('states as of a moment', () => {
  let mayfly: Mayfly
  let admin: Target
  let auditor: Target
  let log: AuditLogJson
  let path: string
  /** The first checkpoint, which has the inbox with two messages. */
  let first: DownloadedLog
  /** The last one, after the end of the inbox. */
  let last: DownloadedLog
  let events: EventJson[]

  const get = <Body>(asOf: number | string, route = path, target = auditor) =>
    call<Body>(target, 'GET', `${route}${route.includes('?') ? '&' : '?'}as_of=${asOf}`)

  /** How many leaves the log had after an event. */
  const after = (type: string) => {
    const event = events.find((each) => each.type === type)
    return last.leaves.findIndex(({ id }) => id === event?.id) + 1
  }

  const downloadWith = (eventId: string | undefined) =>
    until('a checkpoint with the event', async () => {
      const found = await downloadLog(auditor, log).catch(() => null)
      return found?.leaves.some(({ id }) => id === eventId) === true ? found : null
    })

  const historyOf = async () => (await call<EventJson[]>(auditor, 'GET', `${path}/history`)).body

  beforeAll(async () => {
    mayfly = await startMayfly()
    admin = withKey(mayfly, (await openAccount(mayfly)).key)
    const user = withKey(mayfly, await issueKey(admin, { scopes: ['inboxes'] }))
    auditor = withKey(mayfly, await issueKey(admin, { scopes: ['audit'] }))
    log = await auditLogOf(auditor)
    const labels = { run: 'one' }
    const { id, address } = await createInbox(user, { labels, duration: '1h', name: 'secret name' })
    path = `/v1/inboxes/${id}`
    await send(user, address, mail('secret one'))
    await send(user, address, mail('secret two'))
    const [message] = await messagesOf(user, id, 2)
    first = await downloadWith((await historyOf()).at(-1)?.id)
    await call(user, 'DELETE', `${path}/messages/${message?.id ?? ''}`)
    await call(user, 'PATCH', path, { body: { labels: { run: 'two' }, duration: '2h' } })
    await create(user, `${path}/tokens`, {})
    await issueKey(admin, { environment: 'acceptance' })
    await send(user, address, mail('secret three'))
    await messagesOf(user, id, 2)
    await call(user, 'DELETE', path)
    events = await historyOf()
    last = await downloadWith(events.at(-1)?.id)
  })
  afterAll(() => mayfly.dispose())

  it('shows an inbox as it was, and by which event it was erased', async () => {
    const { status, body, headers } = await get<PastInboxJson>(after('message.received'))
    const { id: event_id, ...end } = events.at(-1) ?? { id: '', type: '', time: '' }
    expect([status, headers.get('mayfly-as-of')]).toEqual([200, String(after('message.received'))])
    expect(body).toMatchObject({
      ...{ state: 'active', labels: { run: 'one' }, duration: '1h', name: null, message_count: 1 },
      erased: { event_id, type: 'inbox.deleted', time: end.time },
    })
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(3_600_000)
    const changed = await get<PastInboxJson>(after('inbox.changed'))
    expect(changed.body).toMatchObject({ labels: { run: 'two' }, duration: '2h', message_count: 1 })
    const created = await get<PastInboxJson>(after('inbox.created'))
    expect(created.body).toMatchObject({ message_count: 0, last_message_at: null })
  })

  it('shows an inbox as of the last checkpoint that is not after a time', async () => {
    const at = new Date(first.cosignedAt * 1_000).toISOString()
    const { body, headers } = await get<PastInboxJson>(at)
    expect(headers.get('mayfly-as-of')).toBe(String(first.size))
    expect(body).toEqual((await get<PastInboxJson>(first.size)).body)
    expect(body.message_count).toBe(2)
    const before = new Date(first.cosignedAt * 1_000 - 3_600_000).toISOString()
    expectProblem(await get(before), { status: 404, code: 'not-found', detail: /no checkpoint/ })
    const now = new Date().toISOString()
    expect((await get(now)).headers.get('mayfly-as-of')).toBe(String(last.size))
  })

  it('lists the messages that an inbox had, without content', async () => {
    const { body, headers } = await get<PastMessageJson[]>(first.size, `${path}/messages`)
    expect(headers.get('mayfly-as-of')).toBe(String(first.size))
    const received = events.filter(({ type }) => type === 'message.received')
    expect(body.map(({ id }) => id)).toEqual(received.slice(0, 2).map(({ message_id }) => message_id))
    expect(body.map(({ erased }) => erased?.type)).toEqual(['message.deleted', 'inbox.deleted'])
    expect(JSON.stringify(body)).not.toContain('secret')
    const later = await get<PastMessageJson[]>(after('token.issued'), `${path}/messages`)
    expect(later.body.map(({ id }) => id)).toEqual([received[1]?.message_id])
    const newest = await get<PastMessageJson[]>(first.size, `${path}/messages?order=desc`)
    expect(newest.body).toEqual(body.toReversed())
    const pages = await pagesFrom<PastMessageJson>(auditor, `${path}/messages?limit=1&as_of=${first.size}`)
    expect(pages.map((page) => page.body)).toEqual(body.map((each) => [each]))
  })

  it('lists the history up to a moment', async () => {
    const size = after('message.deleted')
    const { body, headers } = await get<EventJson[]>(size, `${path}/history`)
    expect(headers.get('mayfly-as-of')).toBe(String(size))
    expect(body).toEqual(events.slice(0, 4))
    const pages = await pagesFrom<EventJson>(auditor, `${path}/history?limit=3&order=desc&as_of=${size}`)
    expect(pages.flatMap((page) => page.body)).toEqual(body.toReversed())
  })

  it('shows the account with the environments of the keys that it had', async () => {
    const ofAccount = (size: number) => get<AccountJson>(size, '/v1/account')
    const now = (await call<AccountJson>(admin, 'GET', '/v1/account')).body
    const latest = await ofAccount(last.size)
    expect([latest.headers.get('mayfly-as-of'), latest.body]).toEqual([String(last.size), now])
    expect(now.environments).toContain('acceptance')
    expect((await ofAccount(first.size)).body.environments).not.toContain('acceptance')
    expectProblem(await ofAccount(0), { status: 404, code: 'not-found' })
  })

  it('needs no password of a protected inbox, and lists no mail that was lost on purpose', async () => {
    const user = withKey(mayfly, await issueKey(admin, { scopes: ['inboxes'] }))
    const inbox = await create<InboxJson & { password: string }>(user, '/v1/inboxes', {
      password_protected: true,
    })
    const headers = { 'mayfly-inbox-password': inbox.password }
    const own = `/v1/inboxes/${inbox.id}`
    const faults = [{ stage: 'after_accept', action: 'drop' }]
    expect((await call(user, 'PUT', `${own}/faults`, { body: faults, headers })).status).toBe(200)
    await send(user, inbox.address, mail('lost'))
    const dropped = await until('the lost mail', async () => {
      const { body } = await call<EventJson[]>(user, 'GET', `${own}/history`)
      return body.find(({ type }) => type === 'message.dropped') ?? null
    })
    const { size } = await downloadWith(dropped.id)
    expect((await get<PastInboxJson>(size, own)).body).toMatchObject({
      ...{ password_protected: true, message_count: 0, erased: null },
    })
    expect((await get<PastMessageJson[]>(size, `${own}/messages`)).body).toEqual([])
  })

  it('answers as the inbox would have', async () => {
    for (const route of [path, `${path}/messages`]) {
      const ended = expectProblem(await get(last.size, route), { status: 410, code: 'inbox-deleted' })
      expect(ended).toMatchObject({ ended_at: events.at(-1)?.time })
    }
    for (const route of [path, `${path}/messages`, `${path}/history`]) {
      expectProblem(await get(after('inbox.created') - 1, route), { status: 404, code: 'not-found' })
    }
  })

  it('refuses what is not a moment of the log', async () => {
    const future = await get(last.size + 1_000)
    expectProblem(future, { status: 409, code: 'not-yet-checkpointed' })
    expect(future.headers.get('retry-after')).toMatch(/^\d+$/)
    for (const asOf of ['', '-1', '1.5', 'yesterday', '2026-13-01T00:00:00Z', '9'.repeat(16), '1&as_of=2']) {
      expectProblem(await get(asOf), { status: 400, code: 'invalid-request' })
    }
    const filtered = await get(last.size, `${path}/messages?subject=secret`)
    expectProblem(filtered, { status: 400, code: 'invalid-request', detail: /as_of/ })
  })

  it('is for keys with the scope audit, which read no mail', async () => {
    const reader = withKey(mayfly, await issueKey(admin, { scopes: ['inboxes', 'read'] }))
    for (const route of [path, `${path}/messages`, `${path}/history`, '/v1/account']) {
      expectProblem(await get(first.size, route, reader), { status: 403, code: 'missing-scope' })
    }
    const active = await createInbox(reader)
    const { token } = await create<{ token: string }>(reader, `/v1/inboxes/${active.id}/tokens`, {})
    const withToken = { ...mayfly, apiKey: token }
    for (const route of ['', '/messages']) {
      const own = `/v1/inboxes/${active.id}${route}`
      expect((await call(withToken, 'GET', own)).status).toBe(200)
      expectProblem(await get(first.size, own, withToken), { status: 403, code: 'missing-scope' })
      expectProblem(await call(auditor, 'GET', own), { status: 403, code: 'missing-scope' })
    }
    const other = withKey(mayfly, (await openAccount(mayfly)).key)
    const foreign = withKey(mayfly, await issueKey(other, { scopes: ['audit'] }))
    for (const route of [path, `${path}/messages`, `${path}/history`]) {
      expectProblem(await get(1, route, foreign), { status: 404, code: 'not-found' })
    }
  })
})
