import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { issueKey, withKey } from '#test/harness/accounts.js'
import {
  call,
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
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'

interface SummaryJson {
  created: number
  failed: number
  problem: { code: string } | null
}

interface DeletedJson {
  deleted: number
  remaining: number
}

const NDJSON = { accept: 'application/x-ndjson' }

const create = (target: Target, body: object, headers: Record<string, string> = {}) =>
  call<InboxJson[]>(target, 'POST', '/v1/inboxes/bulk', { body, headers })
const deleteAll = (target: Target, body: object) =>
  call<DeletedJson>(target, 'POST', '/v1/inboxes/bulk-delete', { body })

async function listed(target: Target, label: string): Promise<InboxJson[]> {
  const pages = await pagesFrom<InboxJson>(target, `/v1/inboxes?label=${label}&limit=1000&order=asc`)
  return pages.flatMap(({ body }) => body)
}

/** Whether there is an inbox with the label. Asks for one only, because the server goes on meanwhile. */
async function isBegun(target: Target, label: string): Promise<boolean> {
  return (await call<InboxJson[]>(target, 'GET', `/v1/inboxes?label=${label}&limit=1`)).body.length > 0
}

function linesOf(text: string): { inboxes: InboxJson[]; summary: SummaryJson } {
  expect(text.endsWith('\n')).toBe(true)
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as InboxJson & SummaryJson)
  const summary = lines.pop()
  if (summary === undefined) throw new Error('there is no last line')
  return { inboxes: lines, summary }
}

describe('many inboxes in one request', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it('are created with the same properties and numbered names, and accept mail', async () => {
    const wanted = { count: 250, duration: '30m', name: 'user', labels: { run: 'array' } }
    const { status, body } = await create(mayfly, wanted)
    expect(status).toBe(201)
    expect(body.map(({ name }) => name)).toEqual(Array.from({ length: 250 }, (_, at) => `user-${at + 1}`))
    expect(new Set(body.map(({ address }) => address)).size).toBe(250)
    for (const each of body) {
      expect(each).toMatchObject({ state: 'active', duration: '30m', labels: { run: 'array' } })
    }
    expect(await listed(mayfly, 'run:array')).toEqual(body)
    const last = body.at(-1)
    await send(mayfly, last?.address ?? '', mail('For the last'))
    expect(await messagesOf(mayfly, last?.id ?? '', 1)).toHaveLength(1)
  })

  it('have no names without a name, and passwords of their own', async () => {
    const { body } = await create(mayfly, { count: 3, password_protected: true })
    expect(body.map(({ name }) => name)).toEqual([null, null, null])
    const passwords = body.map((each) => (each as InboxJson & { password: string }).password)
    expect(new Set(passwords).size).toBe(3)
    const read = (password: string) =>
      call(mayfly, 'GET', `/v1/inboxes/${body[0]?.id}/messages`, {
        headers: { 'mayfly-inbox-password': password },
      })
    expect((await read(passwords[0] ?? '')).status).toBe(200)
    expect((await read(passwords[1] ?? '')).status).toBe(403)
  })

  it('are lines, as they are created, with the counts at the end', async () => {
    const { status, headers, body } = await call<string>(mayfly, 'POST', '/v1/emails/bulk', {
      body: { count: 250, labels: { run: 'lines' } },
      headers: NDJSON,
    })
    expect(status).toBe(201)
    expect(headers.get('content-type')).toBe('application/x-ndjson')
    const { inboxes, summary } = linesOf(body)
    expect(summary).toEqual({ created: 250, failed: 0, problem: null })
    expect(await listed(mayfly, 'run:lines')).toEqual(inboxes)
  })

  it('are the same ones in a repeat with the same Idempotency-Key', async () => {
    for (const count of [3, 4_000]) {
      const headers = { 'idempotency-key': randomUUID() }
      const wanted = { count, labels: { run: `repeat-${count}` } }
      const first = await create(mayfly, wanted, headers)
      expect(first.status).toBe(201)
      expect(await listed(mayfly, `run:repeat-${count}`)).toHaveLength(count)
      await call(mayfly, 'DELETE', `/v1/inboxes/${first.body[0]?.id}`)
      const repeat = await create(mayfly, wanted, headers)
      expect(repeat.headers.get('idempotent-replayed')).toBe('true')
      expect(repeat.body).toEqual(first.body)
      expect(await listed(mayfly, `run:repeat-${count}`)).toHaveLength(count - 1)
    }
  })

  it.each([
    [{ count: 0 }, '/count'],
    [{ count: 10_001 }, '/count'],
    [{ count: 1.5 }, '/count'],
    [{ count: '5' }, '/count'],
    [{}, '/count'],
    [{ count: 5, duration: '31d' }, '/duration'],
    [{ count: 5, address: 'me@mayfly.test' }, '/address'],
    [{ count: 5, labels: { ['👋'.repeat(64)]: '👋'.repeat(128), run: '👋'.repeat(64) } }, '/labels'],
  ])('are not created with %j', async (body, pointer) => {
    for (const headers of [{}, NDJSON]) {
      const refused = await create(mayfly, body, headers)
      const problem = expectProblem(refused, { status: 400, code: 'invalid-request' })
      expect(problem.errors?.map((each) => each.pointer)).toEqual([pointer])
    }
  })

  it('are not created without the scope inboxes', async () => {
    const reader = withKey(mayfly, await issueKey(mayfly, { scopes: ['read'] }))
    expectProblem(await create(reader, { count: 1 }), { status: 403, code: 'missing-scope' })
    expectProblem(await deleteAll(reader, { label: 'run:1' }), { status: 403, code: 'missing-scope' })
    const refused = await create(mayfly, { count: 1 }, { accept: 'text/csv' })
    expectProblem(refused, { status: 406, code: 'not-acceptable' })
  })

  it('are deleted by their ids, and unknown ones and those of others are skipped', async () => {
    const { body: inboxes } = await create(mayfly, { count: 150, labels: { run: 'ids' } })
    const own = withKey(mayfly, await issueKey(mayfly, { scopes: ['inboxes'], environment: 'staging' }))
    const other = await createInbox(own)
    const ids = [...inboxes.slice(0, 120).map(({ id }) => id), other.id, 'inb_01h455vb4pex5vsknk084sn02q']
    const first = await deleteAll(mayfly, { ids: [...ids, ...ids] })
    expect(first.body).toEqual({ deleted: 120, remaining: 0 })
    expect(await listed(mayfly, 'run:ids')).toHaveLength(30)
    expect((await deleteAll(mayfly, { ids })).body).toEqual({ deleted: 0, remaining: 0 })
    expect((await call(own, 'GET', `/v1/inboxes/${other.id}`)).status).toBe(200)
    const gone = await call(mayfly, 'GET', `/v1/inboxes/${inboxes[0]?.id}`)
    expectProblem(gone, { status: 410, code: 'inbox-deleted' })
    await expect(send(mayfly, inboxes[0]?.address ?? '', mail('Too late'))).rejects.toThrow('550')
  })

  it('are deleted by a label', async () => {
    await create(mayfly, { count: 130, labels: { run: 'label' } })
    await create(mayfly, { count: 1, labels: { run: 'other-label' } })
    expect((await deleteAll(mayfly, { label: 'run:label' })).body).toEqual({ deleted: 130, remaining: 0 })
    expect(await listed(mayfly, 'run:label')).toEqual([])
    expect(await listed(mayfly, 'run:other-label')).toHaveLength(1)
  })

  it('are only deleted with the scope admin if they are protected', async () => {
    const plain = withKey(mayfly, await issueKey(mayfly, { environment: 'development' }))
    const { body } = await create(mayfly, { count: 2, password_protected: true, labels: { run: 'secret' } })
    await create(mayfly, { count: 1, labels: { run: 'secret' } })
    expect((await deleteAll(plain, { label: 'run:secret' })).body).toEqual({ deleted: 1, remaining: 0 })
    const ids = body.map(({ id }) => id)
    expect((await deleteAll(plain, { ids })).body).toEqual({ deleted: 0, remaining: 0 })
    const admin = await issueKey(mayfly, { environment: 'development', scopes: ['admin'] })
    const deleted = await deleteAll(withKey(mayfly, admin), { ids })
    expect(deleted.body).toEqual({ deleted: 2, remaining: 0 })
  })

  it.each([
    {},
    { ids: [] },
    { ids: ['inb_1'] },
    { ids: 'inb_01h455vb4pex5vsknk084sn02q' },
    { ids: Array.from({ length: 10_001 }, () => 'inb_01h455vb4pex5vsknk084sn02q') },
    { label: 'run' },
    { label: 'run:1', ids: ['inb_01h455vb4pex5vsknk084sn02q'] },
    { label: ['run:1'] },
  ])('are not deleted with such a body: %j', async (body) => {
    expectProblem(await deleteAll(mayfly, body), { status: 400, code: 'invalid-request' })
  })

  it('takes the ids of 10,000 inboxes', async () => {
    const ids = Array.from({ length: 10_000 }, (_, at) => `inb_${String(at).padStart(26, '0')}`)
    expect((await deleteAll(mayfly, { ids })).body).toEqual({ deleted: 0, remaining: 0 })
  })

  it('count as one request for each hundred', async () => {
    const limited = withKey(mayfly, await issueKey(mayfly, { environment: 'development', rate_limit: 20 }))
    const left = ({ headers }: { headers: Headers }) => Number(headers.get('x-ratelimit-remaining'))
    const before = left(await call(limited, 'GET', '/v1/inboxes'))
    const created = await create(limited, { count: 250, labels: { run: 'charged' } })
    expect(before - left(created)).toBe(3)
    const after = left(await call(limited, 'GET', '/v1/inboxes'))
    expect(before - after).toBe(4)
    const deleted = await deleteAll(limited, { label: 'run:charged' })
    expect(after - left(deleted)).toBe(3)
    const last = left(await call(limited, 'GET', '/v1/inboxes'))
    expect(after - last).toBe(4)
    await deleteAll(limited, { label: 'run:charged' })
    expect(last - left(await call(limited, 'GET', '/v1/inboxes'))).toBe(2)
  })

  it('exceed the limit of the key once', async () => {
    const key = await issueKey(mayfly, { environment: 'development', rate_limit: 20 })
    const limited = withKey(mayfly, key)
    const exceeding = await create(limited, { count: 3_000, labels: { run: 'exceeds' } })
    expect(exceeding.status).toBe(201)
    expect(exceeding.headers.get('ratelimit')).toMatch(/^"burst";r=10;/)
    const refused = await create(limited, { count: 101 })
    expectProblem(refused, { status: 429, code: 'rate-limited' })
    const retryAfter = refused.headers.get('retry-after')
    expect(Number(retryAfter)).toBeGreaterThan(0)
    expect(refused.headers.get('ratelimit')).toBe(`"sustained";r=0;t=${retryAfter}`)
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0')
    const ids = Array.from({ length: 101 }, (_, at) => `inb_${String(at).padStart(26, '0')}`)
    expectProblem(await deleteAll(limited, { ids }), { status: 429, code: 'rate-limited' })
    // The burst is left for single requests.
    expect((await create(limited, { count: 100 })).status).toBe(201)
  })
})

describe('the turn of a client that creates many inboxes', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ env: { MAYFLY_STREAM_STALL_MS: '6000' } })
  })
  afterAll(() => mayfly.dispose())

  /** Sends the request, and reads nothing of its answer. */
  async function createUnread(body: object, accept: string): Promise<Socket> {
    const { hostname, port, host } = new URL(mayfly.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined).pause()
    await once(socket, 'connect')
    const sent = JSON.stringify(body)
    const headers = [
      `host: ${host}`,
      `authorization: Bearer ${mayfly.apiKey}`,
      'content-type: application/json',
      `accept: ${accept}`,
      `content-length: ${sent.length}`,
    ]
    socket.write(`POST /v1/inboxes/bulk HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${sent}`)
    return socket
  }

  /** Resolves once a later request has had its turn. It is refused if it waits for more than ten seconds. */
  const turnOfAnother = () =>
    until(
      'the turn of another request',
      async () => {
        const { status } = await create(mayfly, { count: 1 })
        if (status !== 201) expect(status).toBe(503)
        return status === 201
      },
      90_000,
    )

  it('lasts until the work is done, if the client leaves', async () => {
    const socket = await createUnread({ count: 2_000, labels: { run: 'left' } }, 'application/json')
    await until('the first inboxes', () => isBegun(mayfly, 'run:left'))
    socket.resetAndDestroy()
    await turnOfAnother()
    expect(await listed(mayfly, 'run:left')).toHaveLength(2_000)
  })

  it('ends if the client reads nothing of its lines', async () => {
    const value = 'v'.repeat(128)
    const labels = Object.fromEntries(Array.from({ length: 7 }, (_, at) => [`label-${at}`, value]))
    const wanted = { count: 10_000, labels: { ...labels, run: 'unread' } }
    const socket = await createUnread(wanted, NDJSON.accept)
    try {
      await until('the first inboxes', () => isBegun(mayfly, 'run:unread'))
      await turnOfAnother()
    } finally {
      socket.destroy()
    }
  })
})

describe('a server that dies while it creates many inboxes', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it('completes them when the request is repeated', async () => {
    const wanted = { count: 10_000, labels: { run: 'killed' } }
    const headers = { 'idempotency-key': randomUUID() }
    const first = create(mayfly, wanted, headers).catch(() => null)
    await until('the first inboxes', () => isBegun(mayfly, 'run:killed'))
    await mayfly.end('SIGKILL')
    expect(await first).toBeNull()
    const restarted = await mayfly.restart()
    try {
      const before = await listed(restarted, 'run:killed')
      expect(before.length).toBeGreaterThan(0)
      expect(before.length).toBeLessThan(wanted.count)
      // The lease of the first run may not have ended.
      const repeated = await until('the repeat to run', async () => {
        const { status, body } = await create(restarted, wanted, headers)
        if (status === 201) return body
        expect([409, 503]).toContain(status)
        return null
      })
      expect(repeated).toHaveLength(wanted.count)
      const after = await listed(restarted, 'run:killed')
      expect(after).toHaveLength(wanted.count)
      expect(new Set(after.map(({ id }) => id)).size).toBe(wanted.count)
      const kept = new Set(before.map(({ id }) => id))
      expect(after.filter(({ id }) => kept.has(id))).toHaveLength(before.length)
    } finally {
      await restarted.end('SIGKILL')
    }
  })
})
