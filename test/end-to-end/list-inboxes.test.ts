import {
  call,
  createInbox,
  inboxWith,
  mail,
  nextOf,
  pagesFrom,
  type InboxJson,
} from '#test/harness/client.js'
import { issueKey, withKey } from '#test/harness/accounts.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

describe('the list of inboxes', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  const idsAt = async (query: string) => {
    const { status, body } = await call<InboxJson[]>(mayfly, 'GET', `/v1/inboxes?${query}`)
    expect(status).toBe(200)
    return body.map(({ id }) => id)
  }

  const make = async (count: number, labels: Record<string, string>) => {
    const ids: string[] = []
    for (let made = 0; made < count; made += 1) ids.push((await createInbox(mayfly, { labels })).id)
    return ids
  }

  it('shows active inboxes, newest first, each as it is read by id', async () => {
    const made = await make(3, { story: 'order' })
    const { body } = await call<InboxJson[]>(mayfly, 'GET', '/v1/inboxes?limit=3')
    expect(body.map(({ id }) => id)).toEqual(made.toReversed())
    const alone = await call(mayfly, 'GET', `/v1/inboxes/${made[2] ?? ''}`)
    expect(body[0]).toEqual(alone.body)
  })

  it('is filtered by every label', async () => {
    const [both = ''] = await make(1, { story: 'labels', run: '1', 'a b&c': 'x=y:z' })
    const [one = ''] = await make(1, { story: 'labels', run: '2' })
    expect(await idsAt('label=story:labels')).toEqual([one, both])
    expect(await idsAt('label=story:labels&label=run:1')).toEqual([both])
    expect(await idsAt('label=run:1&label=story:labels')).toEqual([both])
    expect(await idsAt('label=run:1&label=run:2')).toEqual([])
    expect(await idsAt(`label=${encodeURIComponent('a b&c:x=y:z')}`)).toEqual([both])
    expect(await idsAt('label=run:')).toEqual([])
    expect(await idsAt('label=RUN:1')).toEqual([])
  })

  it.each([1, 2, 3, 7, 1000])('has pages of %d, without gap or repeat', async (limit) => {
    const story = `pages of ${limit}`
    const made = await make(7, { story })
    const query = new URLSearchParams({ label: `story:${story}`, limit: String(limit) })
    const pages = await pagesFrom<InboxJson>(mayfly, `/v1/inboxes?${query.toString()}`)
    expect(pages.flatMap(({ body }) => body.map(({ id }) => id))).toEqual(made.toReversed())
    expect(pages).toHaveLength(Math.ceil(7 / limit))
    for (const { body } of pages.slice(0, -1)) expect(body).toHaveLength(limit)
  })

  it('has pages of 25 by default', async () => {
    await make(26, { story: 'default limit' })
    const page = await call<InboxJson[]>(mayfly, 'GET', '/v1/inboxes?label=story:default%20limit')
    expect(page.body).toHaveLength(25)
    expect(nextOf(page)).not.toBeNull()
  })

  it('continues after an inbox that was deleted meanwhile, without new inboxes', async () => {
    const made = await make(4, { story: 'moving' })
    const first = await call<InboxJson[]>(mayfly, 'GET', '/v1/inboxes?label=story:moving&limit=2')
    expect(first.body.map(({ id }) => id)).toEqual([made[3], made[2]])
    await call(mayfly, 'DELETE', `/v1/inboxes/${made[2] ?? ''}`)
    await make(1, { story: 'moving' })
    const rest = await pagesFrom<InboxJson>(mayfly, nextOf(first) ?? '')
    expect(rest.flatMap(({ body }) => body.map(({ id }) => id))).toEqual([made[1], made[0]])
  })

  it('shows deleted inboxes with the properties that remain', async () => {
    const { id } = await inboxWith(mayfly, mail('one'), mail('two'))
    const { body: before } = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${id}`)
    const { body: deleted } = await call<{ deleted_at: string }>(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    const { body } = await call<InboxJson[]>(mayfly, 'GET', '/v1/inboxes?state=deleted&limit=1000')
    expect(body.filter((inbox) => inbox.id === id)).toEqual([
      {
        id,
        address: before.address,
        state: 'deleted',
        labels: {},
        created_at: before.created_at,
        ended_at: deleted.deleted_at,
        message_count: 2,
      },
    ])
    expect(await idsAt('state=active&limit=1000')).not.toContain(id)
    expect(await idsAt('state=expired&limit=1000')).not.toContain(id)
  })

  it('finds deleted inboxes by their labels', async () => {
    const [id = ''] = await make(1, { story: 'ended' })
    await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    expect(await idsAt('state=deleted&label=story:ended')).toEqual([id])
    expect(await idsAt('label=story:ended')).toEqual([])
  })

  it.each([
    { query: 'limit=0', parameter: 'limit' },
    { query: 'limit=1001', parameter: 'limit' },
    { query: 'limit=-1', parameter: 'limit' },
    { query: 'limit=1.5', parameter: 'limit' },
    { query: 'limit=1e2', parameter: 'limit' },
    { query: 'limit=', parameter: 'limit' },
    { query: 'limit=%zz', parameter: 'limit' },
    { query: 'limit=1&limit=2', parameter: 'limit' },
    { query: 'state=gone', parameter: 'state' },
    { query: 'state=', parameter: 'state' },
    { query: 'state=active&state=deleted', parameter: 'state' },
    { query: 'label=x', parameter: 'label' },
    { query: 'label=:x', parameter: 'label' },
    { query: 'label=', parameter: 'label' },
    { query: 'label=a:b&label=x', parameter: 'label' },
    { query: 'label[]=a:b', parameter: 'label[]' },
    { query: 'cursor=', parameter: 'cursor' },
    { query: 'cursor=garbage', parameter: 'cursor' },
    { query: 'cursor=a&cursor=b', parameter: 'cursor' },
    { query: 'nope=1', parameter: 'nope' },
    { query: 'constructor=1', parameter: 'constructor' },
    { query: '__proto__=1', parameter: '__proto__' },
    { query: 'STATE=active', parameter: 'STATE' },
    { query: '=', parameter: '' },
  ])('refuses ?$query, naming $parameter', async ({ query, parameter }) => {
    const answer = await call(mayfly, 'GET', `/v1/inboxes?${query}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter }] })
  })

  it('is metadata for a key that has only the scope audit, with ids whose history it may read', async () => {
    const inbox = await inboxWith(mayfly, mail('a-secret-subject'))
    await call(mayfly, 'PATCH', `/v1/inboxes/${inbox.id}`, { body: { name: 'a-secret-name' } })
    const auditor = withKey(mayfly, await issueKey(mayfly, { scopes: ['audit'], environment: 'development' }))
    const read = (path: string) => call<InboxJson[]>(auditor, 'GET', path)
    const [first] = (await read('/v1/inboxes?limit=1')).body
    const { body: whole } = await call<object>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
    expect(first).toEqual({ ...whole, name: null })
    expect((await read(`/v1/inboxes/${inbox.id}/history`)).status).toBe(200)
    for (const path of ['', '/messages', '/tokens']) {
      const answer = await read(`/v1/inboxes/${inbox.id}${path}`)
      expectProblem(answer, { status: 403, code: 'missing-scope' })
    }
    const elsewhere = await issueKey(mayfly, { scopes: ['audit'], environment: 'nowhere' })
    expect((await call(withKey(mayfly, elsewhere), 'GET', '/v1/inboxes')).body).toEqual([])
  })

  it("refuses a cursor of an inbox's messages", async () => {
    const { headers } = await call(mayfly, 'POST', '/v1/inboxes')
    const cursor = headers.get('mayfly-cursor') ?? ''
    const answer = await call(mayfly, 'GET', `/v1/inboxes?cursor=${cursor}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: 'cursor' }] })
  })
})
