import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
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
  type Target,
} from '#test/harness/client.js'
import {
  listen,
  openIdleReader,
  type ListeningClient,
  type StreamedEvent,
} from '#test/harness/event-stream.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

const PATH = '/v1/events'

describe('the events of an environment', () => {
  let mayfly: Mayfly
  let admin: Target
  /** A key of an environment of its own, for each test. */
  let own: Target
  let keyId: string
  let clients: ListeningClient[]

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, env: { MAYFLY_STREAM_STALL_MS: '8000' } })
  })
  afterAll(() => mayfly.dispose())

  beforeEach(async () => {
    admin = withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise' })).key)
    const key = await issueKey(admin)
    own = withKey(mayfly, key)
    keyId = key.id
    clients = []
  })
  afterEach(() => {
    for (const client of clients) client.close()
  })

  const listenAt = async (query = '', lastId: string | null = null) => {
    const client = await listen(own, PATH + query, lastId === null ? {} : { 'last-event-id': lastId })
    clients.push(client)
    return client
  }
  const cursorNow = async () => (await call(own, 'GET', '/v1/messages')).headers.get('mayfly-cursor') ?? ''
  const remove = (path: string) => call(own, 'DELETE', `/v1/inboxes/${path}`)

  it('are sent as they happen in any inbox, also in one that is created meanwhile', async () => {
    const one = await inboxWith(own, mail('before'))
    const client = await listenAt()
    expect(client.status).toBe(200)
    expect(client.headers.get('content-type')).toBe('text/event-stream')
    await send(own, one.address, mail('first'))
    await client.count(1)
    const two = await inboxWith(own, mail('second'))
    await client.count(2)
    const message = only(await messagesOf(own, two.id, 1))
    await remove(`${two.id}/messages/${message.id}`)
    await client.count(3)
    await remove(one.id)
    const events = await client.count(4)
    expect(events.map(({ event }) => event)).toEqual([
      'message.received',
      'message.received',
      'message.deleted',
      'inbox.deleted',
    ])
    expect(events[1]?.data).toEqual({
      type: 'message.received',
      timestamp: message.received_at,
      data: message,
    })
    expect(events[2]?.data.data).toMatchObject({ id: message.id, inbox_id: two.id })
    expect(events[3]?.data.data).toMatchObject({ id: one.id, state: 'deleted' })
    expect(client.isOver()).toBe(false)
  })

  it('have ids that are cursors of the messages, and start after a cursor or the last event', async () => {
    const start = await cursorNow()
    const inboxes = [await inboxWith(own, mail('1')), await inboxWith(own, mail('2'))]
    const [first, second] = await (await listenAt(`?cursor=${start}`)).count(2)
    expect(subjects([first, second])).toEqual(['1', '2'])
    const after = await pagesFrom<MessageJson>(own, `/v1/messages?cursor=${first?.id ?? ''}`)
    expect(after.flatMap(({ body }) => body.map(({ subject }) => subject))).toEqual(['2'])
    // A client that reconnects sends the cursor of its first request again.
    expect(subjects(await (await listenAt(`?cursor=${start}`, first?.id)).count(1))).toEqual(['2'])
    const late = await listenAt('', second?.id)
    await send(own, inboxes[0]?.address ?? '', mail('3'))
    expect(subjects(await late.count(1))).toEqual(['3'])
  })

  it('are those of inboxes with the wanted labels, without protected ones and other environments', async () => {
    const labels = { run: '42' }
    const labelled = await createInbox(own, { labels })
    const secret = await createInbox(own, { labels, password_protected: true })
    const plain = await createInbox(own)
    const foreign = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    const [all, some] = [await listenAt(), await listenAt('?label=run:42')]
    await send(own, secret.address, mail('secret'))
    await send(own, plain.address, mail('plain'))
    await inboxWith(foreign, mail('of another environment'))
    await send(own, labelled.address, mail('labelled'))
    await Promise.all([all.count(2), some.count(1)])
    for (const { id } of [plain, labelled]) await remove(id)
    const events = await all.count(4)
    expect(subjects(events)).toEqual(['plain', 'labelled'])
    expect(names(events)).toEqual(['message.received', 'message.received', 'inbox.deleted', 'inbox.deleted'])
    const labelledEvents = await some.count(2)
    expect(subjects(labelledEvents)).toEqual(['labelled'])
    expect(labelledEvents[1]?.data.data).toMatchObject({ id: labelled.id, state: 'deleted' })
  })

  it('reach a client that reconnects without gap or repeat', async () => {
    const [INBOXES, EACH] = [6, 10]
    const start = await cursorNow()
    const inboxes = await Promise.all(Array.from({ length: INBOXES }, () => createInbox(own)))
    const deleted = new Set<string>()
    const is = { changing: true }
    const changing = Promise.all(
      inboxes.map(async ({ id, address }) => {
        for (let n = 0; n < EACH; n += 1) await send(own, address, mail(`${n}`))
        const last = (await messagesOf(own, id, EACH)).at(-1)?.id ?? ''
        await remove(`${id}/messages/${last}`)
        deleted.add(last)
      }),
    ).finally(() => (is.changing = false))
    const received: StreamedEvent[] = []
    const kept = INBOXES * (EACH - 1)
    const isComplete = () =>
      received.filter(({ event }) => event === 'message.deleted').length === INBOXES &&
      received.filter(({ data }) => data.type === 'message.received' && !isGone(data.data.id)).length === kept
    const isGone = (id: unknown) => deleted.has(String(id))
    await until(
      'all events',
      async () => {
        const client = await listenAt(`?cursor=${start}`, received.at(-1)?.id)
        await client.count(3, 300).catch(() => undefined)
        client.close()
        received.push(...client.events())
        return !is.changing && isComplete()
      },
      60_000,
    )
    await changing
    const keys = received.map(({ event, data }) => `${event} ${String(data.data.id)}`)
    expect(new Set(keys).size).toBe(keys.length)
    for (const { id } of inboxes) {
      const ofInbox = received.filter(
        ({ event, data }) => event === 'message.received' && data.data.inbox_id === id,
      )
      const ids = ofInbox.map(({ data }) => data.data.id).filter((messageId) => !isGone(messageId))
      expect(ids).toEqual((await messagesOf(own, id, EACH - 1)).map((message) => message.id))
    }
  }, 90_000)

  it('stop for a client that does not read, and go on for others', async () => {
    const count = 60
    const cursor = await cursorNow()
    const text = 'y'.repeat(78).concat('\r\n').repeat(2_800)
    const inbox = await createInbox(own)
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let sent = 0; sent < count / 4; sent += 1) await send(own, inbox.address, mail('big', text))
      }),
    )
    await until('all of it', async () => {
      const { body } = await call<InboxJson>(own, 'GET', `/v1/inboxes/${inbox.id}`)
      return body.message_count === count
    })
    const idle = openIdleReader(own, `${PATH}?cursor=${cursor}`)
    const reader = await listenAt(`?cursor=${cursor}`)
    expect(await reader.count(count, 90_000)).toHaveLength(count)
    await until('its line', () => mayfly.output().stderr.includes('"stream":"client-stalled"'))
    expect(reader.isOver()).toBe(false)
    idle.close()
  }, 180_000)

  it('end when their key is revoked', async () => {
    const inbox = await createInbox(own)
    const client = await listenAt()
    await send(own, inbox.address, mail('1'))
    await client.count(1)
    expect((await call(admin, 'DELETE', `/v1/keys/${keyId}`)).status).toBe(200)
    expect(subjects(await client.end())).toEqual(['1'])
  })

  it('are refused with an invalid cursor, in the query or the header', async () => {
    const other = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    const foreign = (await call(other, 'GET', '/v1/messages')).headers.get('mayfly-cursor') ?? ''
    const invalid = { status: 400, code: 'invalid-request' }
    for (const wrong of [foreign, 'x', 'AAAA']) {
      expectProblem(await call(own, 'GET', `${PATH}?cursor=${wrong}`), {
        ...invalid,
        at: [{ parameter: 'cursor' }],
      })
      const headers = { 'last-event-id': wrong }
      expectProblem(await call(own, 'GET', PATH, { headers }), {
        ...invalid,
        at: [{ header: 'Last-Event-ID' }],
      })
    }
    expectProblem(await call(own, 'GET', `${PATH}?label=x`), { ...invalid, at: [{ parameter: 'label' }] })
    const head = await call(own, 'HEAD', PATH)
    expect({ status: head.status, body: head.body }).toEqual({ status: 200, body: '' })
  })
})

function names(events: readonly StreamedEvent[]): string[] {
  return events.map(({ event }) => event)
}

function subjects(events: readonly (StreamedEvent | undefined)[]): unknown[] {
  return events.flatMap((each) => (each?.event === 'message.received' ? [each.data.data.subject] : []))
}
