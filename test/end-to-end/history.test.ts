import {
  call,
  create,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  nextOf,
  pagesFrom,
  send,
  type Answer,
} from '#test/harness/client.js'
import { signIn } from '#test/harness/console.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { mintId } from '#libs/domain/ids/mint.js'

interface EventJson {
  id: string
  type: string
  time: string
  inbox_id: string
  message_id: string | null
  key_id: string | null
  actor: string | null
  changed: string[] | null
  position: { topic: string; partition: number; offset: number }
  size: number | null
  digest: string | null
}

describe('the history of an inbox', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  const historyOf = (id: string, query = '') =>
    call<EventJson[]>(mayfly, 'GET', `/v1/inboxes/${id}/history${query}`)
  const types = ({ body }: Pick<Answer<EventJson[]>, 'body'>) => body.map(({ type }) => type)

  it('has every event, oldest first, with its details but no content', async () => {
    const inbox = await inboxWith(mayfly, mail('a-secret-subject', 'a-secret-text'), mail('second'))
    const [first, second] = await messagesOf(mayfly, inbox.id, 2)
    const path = `/v1/inboxes/${inbox.id}`
    const removed = await call<{ deleted_at: string }>(
      mayfly,
      'DELETE',
      `${path}/messages/${first?.id ?? ''}`,
    )
    const ended = await call<{ deleted_at: string }>(mayfly, 'DELETE', path)
    const answer = await historyOf(inbox.id)
    expect(answer.status).toBe(200)
    const key: unknown = expect.stringMatching(/^key_\w{26}$/)
    const ofInbox = { inbox_id: inbox.id, message_id: null, size: null, digest: null }
    const none = { ...ofInbox, key_id: null, actor: null, changed: null }
    const received = (message = first) => ({
      ...{ ...none, type: 'message.received', message_id: message?.id, size: message?.size },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
    })
    const { created_at } = inbox
    const wanted = [
      { ...none, type: 'inbox.created', time: created_at, key_id: key },
      received(first),
      received(second),
      { ...none, type: 'message.deleted', time: removed.body.deleted_at, message_id: first?.id, key_id: key },
      { ...none, type: 'inbox.deleted', time: ended.body.deleted_at, key_id: key },
    ]
    expect(answer.body).toMatchObject(wanted)
    const [{ position } = { position: null }] = answer.body
    expect(position).toEqual({
      topic: 'inbox-events',
      partition: expect.any(Number) as unknown,
      offset: expect.any(Number) as unknown,
    })
    const names = ['id', 'type', 'time', 'inbox_id', 'message_id', 'key_id', 'actor', 'changed']
    const ofMail = ['position', 'size', 'digest']
    for (const event of answer.body) {
      expect(Object.keys(event)).toEqual([...names, ...ofMail])
      expect(event.id).toMatch(/^evt_\w{26}$/)
      expect(event.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(event.position.partition).toBe(position?.partition)
    }
    const offsets = answer.body.map((event) => event.position.offset)
    expect(offsets).toEqual(offsets.toSorted((one, other) => one - other))
    expect(new Set(answer.body.map(({ id }) => id)).size).toBe(5)
    expect(JSON.stringify(answer.body)).not.toContain('secret')
  })

  it('names the inbox token or the session that caused an event, beside its key', async () => {
    const inbox = await createInbox(mayfly)
    const path = `/v1/inboxes/${inbox.id}`
    const session = await signIn(mayfly)
    const token = await create<{ id: string; token: string }>(await session.target(), `${path}/tokens`, {
      access: 'owner',
    })
    await call({ ...mayfly, apiKey: token.token }, 'DELETE', path)
    const [created, issued, deleted] = (await historyOf(inbox.id)).body
    expect(created).toMatchObject({ type: 'inbox.created', actor: null })
    const { key_id } = created ?? { key_id: '' }
    expect(issued).toMatchObject({ type: 'token.issued', key_id, actor: session.id })
    expect(deleted).toMatchObject({ type: 'inbox.deleted', key_id, actor: token.id })
  })

  it('names what was changed, without its values', async () => {
    const inbox = await createInbox(mayfly, { name: 'a-secret-name', labels: { run: '1' } })
    for (const body of [
      { name: 'another-secret-name' },
      { labels: { run: '2' } },
      { duration: '2h', labels: { run: '2' } },
      { duration: '3h', name: null, labels: {} },
    ]) {
      expect((await call(mayfly, 'PATCH', `/v1/inboxes/${inbox.id}`, { body })).status).toBe(200)
    }
    const { body } = await historyOf(inbox.id)
    expect(body.map(({ changed }) => changed)).toEqual([
      null,
      ['name'],
      ['labels'],
      ['duration'],
      ['duration', 'name', 'labels'],
    ])
    expect(JSON.stringify(body)).not.toContain('secret')
  })

  it('has pages in both orders', async () => {
    const inbox = await inboxWith(mayfly, mail('1'), mail('2'), mail('3'), mail('4'))
    const path = `/v1/inboxes/${inbox.id}/history`
    const all = (await historyOf(inbox.id)).body
    expect(all).toHaveLength(5)
    for (const limit of [1, 2, 4, 5, 100]) {
      const pages = await pagesFrom<EventJson>(mayfly, `${path}?limit=${limit}`)
      expect(pages).toHaveLength(Math.ceil(5 / limit))
      expect(pages.flatMap(({ body }) => body)).toEqual(all)
      const downwards = await pagesFrom<EventJson>(mayfly, `${path}?limit=${limit}&order=desc`)
      expect(downwards).toHaveLength(Math.ceil(5 / limit))
      expect(downwards.flatMap(({ body }) => body)).toEqual(all.toReversed())
    }
  })

  it('continues while events arrive: with them in ascending order, without them in descending order', async () => {
    const inbox = await inboxWith(mayfly, mail('1'), mail('2'))
    const up = await historyOf(inbox.id, '?limit=1')
    const down = await historyOf(inbox.id, '?limit=1&order=desc')
    await send(mayfly, inbox.address, mail('3'))
    await messagesOf(mayfly, inbox.id, 3)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    const rest = async (page: Answer<EventJson[]>) =>
      (await pagesFrom<EventJson>(mayfly, nextOf(page) ?? '')).flatMap(types)
    expect(await rest(up)).toEqual([
      ...['message.received', 'message.received', 'message.received'],
      'inbox.deleted',
    ])
    expect(await rest(down)).toEqual(['message.received', 'inbox.created'])
  })

  it('accepts a Mayfly-Cursor, and then has the events after it', async () => {
    const inbox = await inboxWith(mayfly, mail('1'))
    const { headers } = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    const cursor = headers.get('mayfly-cursor') ?? ''
    expect(types(await historyOf(inbox.id, `?cursor=${cursor}`))).toEqual(['inbox.deleted'])
  })

  it('has one end, and no repeated deletions', async () => {
    const inbox = await inboxWith(mayfly, mail('1'))
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    const path = `/v1/inboxes/${inbox.id}`
    const many = (each: string) => Promise.all([1, 2, 3, 4].map(() => call(mayfly, 'DELETE', each)))
    await many(`${path}/messages/${message?.id ?? ''}`)
    await many(path)
    const expected = ['inbox.created', 'message.received', 'message.deleted', 'inbox.deleted']
    expect(types(await historyOf(inbox.id))).toEqual(expected)
  })

  it('is the same after a restart', async () => {
    const inbox = await inboxWith(mayfly, mail('1'))
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    const before = await historyOf(inbox.id)
    expect(await mayfly.end('SIGTERM')).toBe(0)
    mayfly = await mayfly.restart()
    expect((await historyOf(inbox.id)).body).toEqual(before.body)
  })

  it('is found under /v1/emails too, with links there', async () => {
    const inbox = await createInbox(mayfly)
    await call(mayfly, 'DELETE', `/v1/emails/${inbox.id}`)
    const page = await call<EventJson[]>(mayfly, 'GET', `/v1/emails/${inbox.id}/history?limit=1`)
    expect(nextOf(page)).toMatch(new RegExp(`^/v1/emails/${inbox.id}/history\\?limit=1&cursor=`))
    const rest = await call<EventJson[]>(mayfly, 'GET', nextOf(page) ?? '')
    expect(types(rest)).toEqual(['inbox.deleted'])
  })

  it('of an unknown inbox is answered 404', async () => {
    for (const id of [mintId('inb'), 'nonsense']) {
      expectProblem(await historyOf(id), { status: 404, code: 'not-found' })
    }
  })

  it.each(['limit=0', 'limit=101', 'order=up', 'cursor=nonsense', 'subject=x'])(
    'refuses ?%s',
    async (query) => {
      const { id } = await createInbox(mayfly)
      const at = [{ parameter: query.split('=')[0] ?? '' }]
      expectProblem(await historyOf(id, `?${query}`), { status: 400, code: 'invalid-request', at })
    },
  )
})
