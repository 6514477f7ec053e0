import { mintId } from '#libs/domain/ids/mint.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  pagesFrom,
  send,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { withKey, issueKey } from '#test/harness/accounts.js'
import {
  listen,
  openIdleReader,
  type ListeningClient,
  type StreamedEvent,
} from '#test/harness/event-stream.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { seededRandom } from '#test/harness/seeded-random.js'
import { until } from '#test/harness/until.js'
import { httpPort, openWire } from '#test/harness/wire.js'

const MAX_STREAMS = 12

interface HistoryEvent {
  type: string
  message_id: string | null
}

describe('the events of an inbox', () => {
  let mayfly: Mayfly
  let clients: ListeningClient[]
  /** Streams that are open in addition to those of the tests. */
  let others = 0

  beforeAll(async () => {
    const env = { MAYFLY_MAX_STREAMS: String(MAX_STREAMS), MAYFLY_STREAM_STALL_MS: '8000' }
    mayfly = await startMayfly({ env })
  })
  afterAll(() => mayfly.dispose())
  beforeEach(() => {
    clients = []
  })
  afterEach(async () => {
    for (const client of clients) client.close()
    await openStreams(0)
  })

  const pathOf = (id: string) => `/v1/inboxes/${id}/events`
  const listenAt = async (path: string, lastId: string | null = null) => {
    const client = await listen(mayfly, path, lastId === null ? {} : { 'last-event-id': lastId })
    clients.push(client)
    return client
  }
  const remove = (path: string) => call<{ deleted_at: string }>(mayfly, 'DELETE', `/v1/inboxes/${path}`)
  const cursorNow = async (id: string) =>
    (await call(mayfly, 'GET', `/v1/inboxes/${id}`)).headers.get('mayfly-cursor') ?? ''

  const historyPage = (id: string, query: string) =>
    call<HistoryEvent[]>(mayfly, 'GET', `/v1/inboxes/${id}/history?${query}`)
  const historyOf = async (id: string) => {
    const pages = await pagesFrom<HistoryEvent>(mayfly, `/v1/inboxes/${id}/history?limit=100`)
    return pages.flatMap(({ body }) => body)
  }

  async function openStreams(count: number): Promise<void> {
    await until(`${count} open streams`, async () => {
      const { body } = await call<string>(mayfly, 'GET', '/metrics')
      return Number(/^mayfly_open_streams (\d+)$/m.exec(body)?.[1]) === count + others
    })
  }

  it('are sent as they happen, until the end of the inbox closes the stream', async () => {
    const inbox = await inboxWith(mayfly, mail('before'))
    const client = await listenAt(pathOf(inbox.id))
    expect(client.status).toBe(200)
    expect(Object.fromEntries(client.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.stringMatching(/\S/) as unknown,
    })
    expect(client.text()).toMatch(/^retry: 2000\n\n/)

    await send(mayfly, inbox.address, mail('Your code is 493201', 'Line one\r\n\r\nLine\u2028three ✓'))
    const [received] = await client.count(1)
    const [, message] = await messagesOf(mayfly, inbox.id, 2)
    const path = `${inbox.id}/messages/${message?.id ?? ''}`
    const whole = await call<MessageJson>(mayfly, 'GET', `/v1/inboxes/${path}?raw=false`)
    expect(received).toMatchObject({
      event: 'message.received',
      data: { type: 'message.received', data: whole.body },
    })
    expect(received?.data.data).toEqual(whole.body)
    expect(received?.data.timestamp).toBe(received?.data.data.received_at)

    const removed = (await remove(path)).body.deleted_at
    const [, deleted] = await client.count(2)
    expect(deleted).toMatchObject({
      event: 'message.deleted',
      data: { type: 'message.deleted', timestamp: removed },
    })
    const deletion = { id: message?.id, inbox_id: inbox.id, deleted_at: removed }
    expect(deleted?.data.data).toEqual(deletion)

    const ended = (await remove(inbox.id)).body.deleted_at
    const events = await client.end()
    expect(names(events)).toEqual(['message.received', 'message.deleted', 'inbox.deleted'])
    expect(events.at(-1)?.data).toEqual({
      type: 'inbox.deleted',
      timestamp: ended,
      data: { id: inbox.id, state: 'deleted', ended_at: ended },
    })
    await openStreams(0)
  })

  it('start now, after a cursor, or after the last event of a client', async () => {
    const inbox = await inboxWith(mayfly, mail('1'))
    const cursor = await cursorNow(inbox.id)
    await send(mayfly, inbox.address, mail('2'))
    await messagesOf(mayfly, inbox.id, 2)
    await send(mayfly, inbox.address, mail('3'))
    await messagesOf(mayfly, inbox.id, 3)
    const behind = await listenAt(`${pathOf(inbox.id)}?cursor=${cursor}`)
    const [second] = await behind.count(2)
    const now = await listenAt(pathOf(inbox.id))
    const resumed = await listenAt(`${pathOf(inbox.id)}?cursor=${cursor}`, second?.id)
    const after = await call<MessageJson[]>(
      mayfly,
      'GET',
      `/v1/inboxes/${inbox.id}/messages?cursor=${second?.id ?? ''}`,
    )
    expect(after.body.map(({ subject }) => subject)).toEqual(['3'])
    await send(mayfly, inbox.address, mail('4'))
    await Promise.all([behind.count(3), now.count(1), resumed.count(2)])
    await remove(inbox.id)
    expect(subjects(await behind.end())).toEqual(['2', '3', '4'])
    expect(subjects(await now.end())).toEqual(['4'])
    expect(subjects(await resumed.end())).toEqual(['3', '4'])
  })

  it('reach a client that reconnects without gap or repeat', async () => {
    const inbox = await createInbox(mayfly)
    const start = await cursorNow(inbox.id)
    const seed = Date.now() % 100_000
    const random = seededRandom(seed)
    const is = { sent: false, removed: false }
    const sending = Array.from({ length: 3 }, async (_, sender) => {
      for (let number = 0; number < 20; number += 1) {
        await send(mayfly, inbox.address, mail(`${sender}-${number}`))
      }
    })
    const removing = (async () => {
      while (!is.sent) {
        const path = `/v1/inboxes/${inbox.id}/messages?limit=100`
        const { body } = await call<MessageJson[]>(mayfly, 'GET', path)
        const chosen = body[Math.floor(random() * body.length)]
        if (chosen !== undefined && random() < 0.5) await remove(`${inbox.id}/messages/${chosen.id}`)
      }
    })()
    const received: StreamedEvent[] = []
    const listening = (async () => {
      const path = `${pathOf(inbox.id)}?cursor=${start}`
      for (;;) {
        const isLast = is.removed
        const client = await listenAt(path, received.at(-1)?.id)
        if (isLast) {
          // Wait until all events have been sent, because the end of the inbox removes its mail.
          const [last] = (await historyPage(inbox.id, 'limit=1&order=desc')).body
          const newest = () => client.events().at(-1) ?? received.at(-1)
          await until('the newest event', () => newest()?.data.data.id === last?.message_id)
          await remove(inbox.id)
          received.push(...(await client.end()))
          return
        }
        await client.count(1 + Math.floor(random() * 5), 300).catch(() => undefined)
        client.close()
        received.push(...client.events())
      }
    })()
    await Promise.all(sending)
    await until('all of it', async () => {
      const all = await historyOf(inbox.id)
      return all.filter(({ type }) => type === 'message.received').length === 60
    })
    is.sent = true
    await removing
    is.removed = true
    await listening

    const history = await historyOf(inbox.id)
    const gone = new Set(
      history.filter(({ type }) => type === 'message.deleted').map(({ message_id: id }) => id),
    )
    const nameOf = (type: string, id: unknown) => `${type} ${typeof id === 'string' ? id : inbox.id}`
    const receivedNames = received.map(({ event, data }) => nameOf(event, data.data.id))
    const sayable = history.slice(1).map(({ type, message_id: id }) => nameOf(type, id))
    const owed = history
      .slice(1)
      .filter(({ type, message_id: id }) => type !== 'message.received' || !gone.has(id))
      .map(({ type, message_id: id }) => nameOf(type, id))
    // In the order of the history, each once. Only messages that were deleted before they were sent may be missing.
    const places = receivedNames.map((name) => sayable.indexOf(name))
    expect({ seed, places }).toEqual({ seed, places: [...new Set(places)].toSorted((a, b) => a - b) })
    expect(places).not.toContain(-1)
    expect(receivedNames.filter((name) => owed.includes(name))).toEqual(owed)
    expect(history).toHaveLength(62 + gone.size)
  })

  it('are sent to every client', async () => {
    const inbox = await createInbox(mayfly)
    const all = await Promise.all(Array.from({ length: 5 }, () => listenAt(pathOf(inbox.id))))
    await send(mayfly, inbox.address, mail('for all'))
    for (const client of all) expect(subjects(await client.count(1))).toEqual(['for all'])
    await remove(inbox.id)
    for (const client of all) expect(names(await client.end())).toEqual(['message.received', 'inbox.deleted'])
  })

  it('have links with the path of the request', async () => {
    const inbox = await createInbox(mayfly)
    const client = await listenAt(`/v1/emails/${inbox.id}/events`)
    await send(mayfly, inbox.address, mail('x'))
    const { data } = only(await client.count(1))
    expect(data.data.raw_url).toBe(`/v1/emails/${inbox.id}/messages/${String(data.data.id)}/raw`)
  })

  it('omit the large properties of a large message, and name them', async () => {
    const inbox = await createInbox(mayfly)
    const client = await listenAt(pathOf(inbox.id))
    await send(mayfly, inbox.address, mail('large', 'x'.repeat(70).concat('\r\n').repeat(5_000)))
    const { data } = only(await client.count(1))
    expect(data.data).toMatchObject({ subject: 'large', html: null, text: null, truncated: ['text'] })
    expect(data.data.headers).not.toBeNull()
  })

  it('end at once with the process, and continue after the last one in the next process', async () => {
    const inbox = await createInbox(mayfly)
    const client = await listenAt(pathOf(inbox.id))
    await send(mayfly, inbox.address, mail('1'))
    await client.count(1)
    const ended = mayfly.end('SIGTERM')
    // Sooner than the timeout of requests in progress.
    expect(subjects(await client.end(8_000))).toEqual(['1'])
    expect(await ended).toBe(0)
    mayfly = await mayfly.restart()
    await send(mayfly, inbox.address, mail('2'))
    await messagesOf(mayfly, inbox.id, 2)
    const resumed = await listenAt(pathOf(inbox.id), client.lastId())
    await send(mayfly, inbox.address, mail('3'))
    expect(subjects(await resumed.count(2))).toEqual(['2', '3'])
  })

  describe('event streams', () => {
    let inbox: InboxJson
    let quiet: ListeningClient
    let quietSince: number

    beforeAll(async () => {
      inbox = await createInbox(mayfly)
      quietSince = Date.now()
      quiet = await listen(mayfly, pathOf((await createInbox(mayfly)).id))
      others = 1
    })

    it('are limited in number, and a stream whose client disconnects no longer counts', async () => {
      const all = await Promise.all(
        Array.from({ length: MAX_STREAMS - others }, () => listenAt(pathOf(inbox.id))),
      )
      await openStreams(MAX_STREAMS - others)
      const refused = await call(mayfly, 'GET', pathOf(inbox.id))
      expectProblem(refused, { status: 503, code: 'too-many-streams' })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      all[0]?.close()
      await openStreams(MAX_STREAMS - others - 1)
      expect((await listenAt(pathOf(inbox.id))).status).toBe(200)
    })

    it('are released if the client disconnects before they start', async () => {
      const request = `GET ${pathOf(inbox.id)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mayfly.apiKey}\r\n\r\n`
      for (let turn = 0; turn < 3; turn += 1) {
        const wires = await Promise.all(Array.from({ length: 10 }, () => openWire(httpPort(mayfly))))
        for (const wire of wires) wire.write(request)
        await Promise.all(Array.from({ length: turn }, () => call(mayfly, 'GET', '/healthz')))
        for (const wire of wires) wire.close()
      }
      await openStreams(0)
    })

    it('whose client does not read are closed, and delay no others', async () => {
      const full = await createInbox(mayfly)
      const cursor = await cursorNow(full.id)
      const count = 60
      const text = 'y'.repeat(78).concat('\r\n').repeat(2_800)
      const sends = Array.from({ length: 4 }, async () => {
        for (let sent = 0; sent < count / 4; sent += 1) await send(mayfly, full.address, mail('big', text))
      })
      await Promise.all(sends)
      const path = `/v1/inboxes/${full.id}`
      await until(
        'all of it',
        async () => (await call<InboxJson>(mayfly, 'GET', path)).body.message_count === count,
        60_000,
      )
      const idle = openIdleReader(mayfly, `${pathOf(full.id)}?cursor=${cursor}`)
      const reader = await listenAt(`${pathOf(full.id)}?cursor=${cursor}`)
      expect(await reader.count(count, 90_000)).toHaveLength(count)
      await until('its line', () => mayfly.output().stderr.includes('"stream":"client-stalled"'))
      await openStreams(1)
      expect(reader.isOver()).toBe(false)
      idle.close()
    }, 180_000)

    it('answer HEAD as GET, without a stream', async () => {
      const { status, headers, body } = await call(mayfly, 'HEAD', pathOf(inbox.id))
      expect({ status, body }).toEqual({ status: 200, body: '' })
      expect(headers.get('content-type')).toBe('text/event-stream')
      await openStreams(0)
    })

    it('have a comment every 15 seconds', async () => {
      await until('a comment', () => /^:.*\n\n$/m.test(quiet.text()), 20_000)
      expect(Date.now() - quietSince).toBeGreaterThan(14_000)
      // More than one if the tests before took long.
      const most = Math.floor((Date.now() - quietSince) / 14_000)
      expect(quiet.text()).toMatch(new RegExp(`^retry: 2000\n\n(:.*\n\n){1,${most}}$`))
      quiet.close()
      others = 0
    }, 30_000)
  })

  it('end when their key is revoked', async () => {
    const key = await issueKey(mayfly, { environment: 'development', scopes: ['read'] })
    const inbox = await createInbox(mayfly)
    const client = await listen(withKey(mayfly, key), pathOf(inbox.id))
    clients.push(client)
    await send(mayfly, inbox.address, mail('1'))
    await client.count(1)
    expect((await call(mayfly, 'DELETE', `/v1/keys/${key.id}`)).status).toBe(200)
    expect(subjects(await client.end())).toEqual(['1'])
    expect((await listen(withKey(mayfly, key), pathOf(inbox.id))).status).toBe(401)
    const auditor = await issueKey(mayfly, { environment: 'development', scopes: ['audit'] })
    expect((await listen(withKey(mayfly, auditor), pathOf(inbox.id))).status).toBe(403)
    const history = await call<unknown[]>(withKey(mayfly, auditor), 'GET', `/v1/inboxes/${inbox.id}/history`)
    expect(history.body).toHaveLength(2)
  })

  it('of a protected inbox require its password, while its history does not', async () => {
    const made = await createInbox(mayfly, { password_protected: true })
    const { id, address, password } = made as InboxJson & { password: string }
    const refused = await call(mayfly, 'GET', pathOf(id))
    expectProblem(refused, { status: 403, code: 'inbox-password-required' })
    const client = await listen(mayfly, pathOf(id), { 'mayfly-inbox-password': password })
    clients.push(client)
    await send(mayfly, address, mail('guarded'))
    expect(subjects(await client.count(1))).toEqual(['guarded'])
    expect(await historyOf(id)).toHaveLength(2)
  })

  it('of an ended inbox are answered 410, also after the last event', async () => {
    const inbox = await createInbox(mayfly)
    const client = await listenAt(pathOf(inbox.id))
    await send(mayfly, inbox.address, mail('1'))
    await client.count(1)
    await remove(inbox.id)
    await client.end()
    for (const lastId of [null, client.events()[0]?.id ?? '', client.lastId()]) {
      const headers = lastId === null ? {} : { 'last-event-id': lastId }
      const answer = await call(mayfly, 'GET', pathOf(inbox.id), { headers })
      expectProblem(answer, { status: 410, code: 'inbox-deleted' })
    }
  })

  it('of an unknown inbox are answered 404', async () => {
    const answer = await call(mayfly, 'GET', pathOf(mintId('inb')))
    expectProblem(answer, { status: 404, code: 'not-found' })
  })

  it('are refused with an invalid cursor, in the query or the header', async () => {
    const { id } = await createInbox(mayfly)
    const foreign = await cursorNow((await createInbox(mayfly)).id)
    const own = await cursorNow(id)
    const request = (query: string, headers: Record<string, string> = {}) =>
      call(mayfly, 'GET', `${pathOf(id)}${query}`, { headers })
    const invalid = { status: 400, code: 'invalid-request' }
    const parameter = { ...invalid, at: [{ parameter: 'cursor' }] }
    const header = { ...invalid, at: [{ header: 'Last-Event-ID' }] }
    for (const wrong of [foreign, 'x', own.slice(1)]) {
      expectProblem(await request(`?cursor=${wrong}`), parameter)
      expectProblem(await request(`?cursor=${wrong}`, { 'last-event-id': own }), parameter)
      expectProblem(await request('', { 'last-event-id': wrong }), header)
    }
    expectProblem(await request('?limit=1'), { ...invalid, at: [{ parameter: 'limit' }] })
    const accept = await request('', { accept: 'application/json' })
    expectProblem(accept, { status: 406, code: 'not-acceptable' })
    await openStreams(0)
  })
})

function names(events: readonly StreamedEvent[]): string[] {
  return events.map(({ event }) => event)
}

function subjects(events: readonly StreamedEvent[]): unknown[] {
  return events.flatMap(({ event, data }) => (event === 'message.received' ? [data.data.subject] : []))
}
