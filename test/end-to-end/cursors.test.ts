import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  nextOf,
  pagesFrom,
  send,
  type Answer,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

describe('a list of messages', () => {
  let mayfly: Mayfly
  let inbox: InboxJson

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
    inbox = await inboxWith(
      mayfly,
      ...['a1', 'b2', 'a3', 'b4', 'a5', 'b6', 'a7'].map((subject) => mail(subject)),
    )
  })
  afterAll(() => mayfly.dispose())

  const list = (query: string, { id } = inbox) =>
    call<MessageJson[]>(mayfly, 'GET', `/v1/inboxes/${id}/messages?${query}`)
  const subjects = ({ body }: Pick<Answer<MessageJson[]>, 'body'>) => body.map(({ subject }) => subject)
  const pages = async (query: string) => {
    const found = await pagesFrom<MessageJson>(mayfly, `/v1/inboxes/${inbox.id}/messages?${query}`)
    return found.map(subjects)
  }
  const after = async (page: Pick<Answer<unknown>, 'headers'>, query = '', of = inbox) =>
    subjects(await list(`cursor=${cursorOf(page)}&${query}`, of))

  it.each([
    { query: '', expected: [['a1', 'b2', 'a3', 'b4', 'a5', 'b6', 'a7']] },
    { query: 'order=desc', expected: [['a7', 'b6', 'a5', 'b4', 'a3', 'b2', 'a1']] },
    { query: 'limit=7', expected: [['a1', 'b2', 'a3', 'b4', 'a5', 'b6', 'a7']] },
    { query: 'limit=3', expected: [['a1', 'b2', 'a3'], ['b4', 'a5', 'b6'], ['a7']] },
    { query: 'limit=3&order=desc', expected: [['a7', 'b6', 'a5'], ['b4', 'a3', 'b2'], ['a1']] },
    { query: 'limit=1&subject=A', expected: [['a1'], ['a3'], ['a5'], ['a7']] },
    { query: 'limit=1&subject=a&order=desc', expected: [['a7'], ['a5'], ['a3'], ['a1']] },
    { query: 'limit=2&subject=b', expected: [['b2', 'b4'], ['b6']] },
    { query: 'limit=2&subject=nothing', expected: [[]] },
  ])('has pages as requested: ?$query', async ({ query, expected }) => {
    expect(await pages(query)).toEqual(expected)
  })

  it('links to the next page with the same parameters', async () => {
    const link = nextOf(await list('limit=1&subject=a&text=Hello&sender=App%40example'))
    expect(link).toMatch(
      /^\/v1\/inboxes\/inb_\w+\/messages\?limit=1&subject=a&text=Hello&sender=App%40example&cursor=[\w-]+$/,
    )
    const { id } = await inboxWith(mayfly, mail('why? 1'), mail('why? 2'), mail('because'))
    const questions = await pagesFrom<MessageJson>(
      mayfly,
      `/v1/inboxes/${id}/messages?limit=1&subject=why?&has_link=false`,
    )
    expect(questions.map(subjects)).toEqual([['why? 1'], ['why? 2']])
  })

  it('in ascending order has a cursor after the last examined message', async () => {
    expect(await after(await list('limit=2'))).toEqual(['a3', 'b4', 'a5', 'b6', 'a7'])
    expect(await after(await list('limit=1'), 'limit=1')).toEqual(['b2'])
    // b2, which is before a3 of the next page, has been examined too.
    expect(await after(await list('limit=1&subject=a'))).toEqual(['a3', 'b4', 'a5', 'b6', 'a7'])
    expect(await after(await list('subject=nothing'))).toEqual([])
    expect(await after(await list(''))).toEqual([])
  })

  it('has a cursor that is valid with any filter and order', async () => {
    const page = await list('limit=3&order=asc')
    expect(await after(page, 'order=desc')).toEqual(['a7', 'b6', 'a5', 'b4'])
    expect(await after(page, 'order=desc&limit=2')).toEqual(['a7', 'b6'])
    expect(await after(page, 'subject=b')).toEqual(['b4', 'b6'])
    const rest = await pages(`cursor=${cursorOf(page)}&order=desc&limit=1&subject=b`)
    expect(rest).toEqual([['b6'], ['b4']])
  })

  it('in descending order has on every page a cursor at the end of the inbox as of the first page', async () => {
    const moving = await inboxWith(mayfly, mail('1'), mail('2'), mail('3'))
    const first = await list('order=desc&limit=1', moving)
    await send(mayfly, moving.address, mail('4'))
    await messagesOf(mayfly, moving.id, 4)
    const second = await call<MessageJson[]>(mayfly, 'GET', nextOf(first) ?? '')
    const third = await call<MessageJson[]>(mayfly, 'GET', nextOf(second) ?? '')
    expect([first, second, third].map(subjects)).toEqual([['3'], ['2'], ['1']])
    expect(nextOf(third)).toBeNull()
    for (const page of [first, second, third]) expect(await after(page, '', moving)).toEqual(['4'])
  })

  it('has exactly the messages after a cursor from any answer', async () => {
    const moving = await createInbox(mayfly)
    const atCreation = await call(mayfly, 'GET', `/v1/inboxes/${moving.id}`)
    const whenEmpty = await list('', moving)
    await send(mayfly, moving.address, mail('1'))
    await messagesOf(mayfly, moving.id, 1)
    const afterOne = await call(mayfly, 'GET', `/v1/inboxes/${moving.id}`)
    const filtered = await list('subject=nothing', moving)
    await send(mayfly, moving.address, mail('2'))
    await messagesOf(mayfly, moving.id, 2)
    for (const page of [atCreation, whenEmpty]) expect(await after(page, '', moving)).toEqual(['1', '2'])
    for (const page of [afterOne, filtered]) expect(await after(page, '', moving)).toEqual(['2'])
  })

  it('has all messages after the cursor of the creation', async () => {
    const created = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes')
    await send(mayfly, created.body.address, mail('first'))
    await messagesOf(mayfly, created.body.id, 1)
    expect(await after(created, '', created.body)).toEqual(['first'])
  })

  it('continues without gap or repeat if a message was deleted meanwhile', async () => {
    const moving = await inboxWith(mayfly, ...['1', '2', '3', '4', '5', '6'].map((subject) => mail(subject)))
    const ids = (await messagesOf(mayfly, moving.id, 6)).map(({ id }) => id)
    const remove = (index: number) =>
      call(mayfly, 'DELETE', `/v1/inboxes/${moving.id}/messages/${ids[index] ?? ''}`)
    const up = await list('limit=2', moving)
    const down = await list('limit=2&order=desc', moving)
    for (const index of [1, 2, 4]) expect((await remove(index)).status).toBe(200)
    const rest = async (page: Answer<MessageJson[]>) =>
      (await pagesFrom<MessageJson>(mayfly, nextOf(page) ?? '')).flatMap(subjects)
    expect(subjects(up)).toEqual(['1', '2'])
    expect(await rest(up)).toEqual(['4', '6'])
    expect(subjects(down)).toEqual(['6', '5'])
    expect(await rest(down)).toEqual(['4', '1'])
    expect(await after(up, '', moving)).toEqual(['4', '6'])
  })

  it('accepts cursors from before a restart', async () => {
    const page = await list('limit=4')
    expect(await mayfly.end('SIGTERM')).toBe(0)
    mayfly = await mayfly.restart()
    expect(await after(page)).toEqual(['a5', 'b6', 'a7'])
    expect(subjects(await call<MessageJson[]>(mayfly, 'GET', nextOf(page) ?? ''))).toEqual(['a5', 'b6', 'a7'])
  })

  it('refuses cursors of other inboxes and damaged ones', async () => {
    const other = await call(mayfly, 'POST', '/v1/inboxes')
    const own = cursorOf(await list('limit=1'))
    const flipped = (own.startsWith('A') ? 'B' : 'A') + own.slice(1)
    const wrong = [
      cursorOf(other),
      '',
      'garbage',
      own.slice(1),
      own.slice(0, -1),
      `${own}A`,
      `${own}=`,
      flipped,
      'a'.repeat(5_000),
    ]
    for (const cursor of [...wrong, '%ff', '%00', inbox.id]) {
      const answer = await list(`cursor=${cursor}`)
      expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: 'cursor' }] })
    }
    expectProblem(await list(`cursor=${own}&cursor=${own}`), { status: 400, code: 'invalid-request' })
  })

  it.each([
    'limit=0',
    'limit=101',
    'limit=x',
    'limit=',
    'order=DESC',
    'order=',
    'nope=1',
    'state=active',
    'constructor=1',
    '__proto__=1',
  ])('refuses ?%s', async (query) => {
    const at = [{ parameter: query.split('=')[0] ?? '' }]
    expectProblem(await list(query), { status: 400, code: 'invalid-request', at })
  })
})

function cursorOf({ headers }: Pick<Answer<unknown>, 'headers'>): string {
  const cursor = headers.get('mayfly-cursor')
  if (cursor === null) throw new Error('the answer has no Mayfly-Cursor')
  return cursor
}
