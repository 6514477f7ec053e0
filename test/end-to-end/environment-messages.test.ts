import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  nextOf,
  only,
  pagesFrom,
  send,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'

const PATH = '/v1/messages'
const INBOXES = 12
const MAILS = 60

type ListedJson = MessageJson & { inbox_id: string }

describe('the mail of an environment', () => {
  let mayfly: SharedMayfly
  /** A key of an environment of its own, for each test. */
  let own: Target
  let admin: Target

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })
  beforeEach(async () => {
    admin = withKey(mayfly, (await openAccount(mayfly.operator, { plan: 'enterprise' })).key)
    own = withKey(mayfly, await issueKey(admin, { scopes: ['inboxes'] }))
  })

  const listed = async (query = '', target = own): Promise<ListedJson[]> =>
    (await pagesFrom<ListedJson>(target, PATH + query)).flatMap(({ body }) => body)

  const subjectsOf = (messages: readonly MessageJson[]) => messages.map(({ subject }) => subject)

  it('is that of all its inboxes, as each inbox lists it, oldest or newest first', async () => {
    const [one, two] = [await createInbox(own), await createInbox(own)]
    await createInbox(own)
    for (const [index, { address }] of [one, two, two, one].entries()) {
      await send(own, address, mail(`mail ${index}`))
    }
    const ofOne = await messagesOf(own, one.id, 2)
    const ofTwo = await messagesOf(own, two.id, 2)
    const expected = [ofOne[0], ofTwo[0], ofTwo[1], ofOne[1]]
    expect(await listed()).toEqual(expected)
    expect(await listed('?order=desc')).toEqual(expected.toReversed())
    expect(await listed('?limit=1')).toEqual(expected)
    expect(await listed('?limit=3&order=desc')).toEqual(expected.toReversed())
  })

  it('is empty at first, and its cursor returns what arrives after it', async () => {
    const empty = await call<ListedJson[]>(own, 'GET', `${PATH}?order=desc`)
    expect(empty).toMatchObject({ status: 200, body: [] })
    expect(nextOf(empty)).toBeNull()
    const inboxes = await Promise.all(Array.from({ length: 4 }, () => inboxWith(own, mail('one'))))
    const cursor = empty.headers.get('mayfly-cursor') ?? ''
    expect(await listed(`?cursor=${cursor}`)).toHaveLength(4)
    const newest = await call<ListedJson[]>(own, 'GET', `${PATH}?order=desc&limit=2`)
    expect(nextOf(newest)).not.toBeNull()
    const after = newest.headers.get('mayfly-cursor') ?? ''
    expect(await listed(`?cursor=${after}`)).toEqual([])
    await send(own, only(inboxes.slice(2, 3)).address, mail('two'))
    await messagesOf(own, only(inboxes.slice(2, 3)).id, 2)
    expect(subjectsOf(await listed(`?cursor=${after}&order=desc`))).toEqual(['two'])
    expect(await listed(`?cursor=${cursor}`)).toHaveLength(5)
  })

  it.each([
    { limit: 1, order: 'asc', by: 'cursor' },
    { limit: 7, order: 'asc', by: 'link' },
    { limit: 100, order: 'asc', by: 'cursor' },
    { limit: 3, order: 'desc', by: 'link' },
  ])(
    'returns every message once while more arrive and others are deleted: $order, by $by, $limit at a time',
    async ({ limit, order, by }) => {
      const inboxes = await Promise.all(Array.from({ length: INBOXES }, () => createInbox(own)))
      const progress = { isSending: true }
      const arriving = Promise.all(
        inboxes.map(async (inbox) => {
          for (let n = 0; n < MAILS / INBOXES; n += 1) await send(own, inbox.address, mail(`${n}`))
          await send(own, inbox.address, mail('deleted'))
          const deleted = (await messagesOf(own, inbox.id, MAILS / INBOXES + 1)).at(-1)
          await call(own, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${deleted?.id ?? ''}`)
        }),
      ).finally(() => (progress.isSending = false))

      const seen: ListedJson[] = []
      const first = `${PATH}?limit=${limit}&order=asc`
      let path = order === 'asc' ? first : `${PATH}?limit=${limit}&order=desc`
      await until(
        'all of them',
        async () => {
          const { isSending } = progress
          const page = await call<ListedJson[]>(own, 'GET', path)
          expect(page.status).toBe(200)
          seen.push(...page.body)
          const next = nextOf(page)
          const onward = `${first}&cursor=${page.headers.get('mayfly-cursor') ?? ''}`
          path = by === 'link' ? (next ?? onward) : onward
          return !isSending && page.body.length === 0 && next === null
        },
        60_000,
      )
      await arriving
      const kept = seen.filter(({ subject }) => subject !== 'deleted')
      expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
      expect(kept).toHaveLength(MAILS)
      expect(subjectsOf(await listed()).toSorted()).toEqual(subjectsOf(kept).toSorted())
      if (order === 'desc') return
      for (const { id } of inboxes) {
        const ofInbox = kept.filter(({ inbox_id: inboxId }) => inboxId === id)
        expect(ofInbox.map((message) => message.id)).toEqual(
          (await messagesOf(own, id, MAILS / INBOXES)).map((message) => message.id),
        )
      }
    },
    90_000,
  )

  it('goes on where a page ended early, past 8 MB', async () => {
    const text = 'x'.repeat(3_000_000)
    const inboxes = await Promise.all(
      ['0', '1', '2', '3'].map((subject) => inboxWith(own, mail(subject, text))),
    )
    expect(inboxes).toHaveLength(4)
    const pages = await pagesFrom<ListedJson>(own, PATH)
    expect(pages.map(({ body }) => body.length)).toEqual([2, 2])
    expect(new Set(pages.flatMap(({ body }) => body.map(({ id }) => id))).size).toBe(4)
  })

  it('leaves out protected inboxes, and those that have ended', async () => {
    const open = await inboxWith(own, mail('open'))
    const secret = await createInbox(own, { password_protected: true })
    await send(own, secret.address, mail('secret'))
    const [left, gone] = [await inboxWith(own, mail('left')), await inboxWith(own, mail('gone'))]
    await until('the protected mail', async () => {
      const { body } = await call<InboxJson>(own, 'GET', `/v1/inboxes/${secret.id}`)
      return body.message_count === 1
    })
    expect(subjectsOf(await listed()).toSorted()).toEqual(['gone', 'left', 'open'])
    await call(own, 'DELETE', `/v1/inboxes/${gone.id}`)
    expect(subjectsOf(await listed()).toSorted()).toEqual(['left', 'open'])
    const message = only(await messagesOf(own, left.id, 1))
    await call(own, 'DELETE', `/v1/inboxes/${left.id}/messages/${message.id}`)
    expect((await listed()).map(({ inbox_id: id }) => id)).toEqual([open.id])
  })

  it('is that of the key’s environment and account only, and its cursors too', async () => {
    await inboxWith(own, mail('own'))
    const production = withKey(
      mayfly,
      await issueKey(admin, { environment: 'production', scopes: ['read', 'inboxes'] }),
    )
    await inboxWith(production, mail('production'))
    await inboxWith(mayfly, mail('of another account'))
    expect(subjectsOf(await listed())).toEqual(['own'])
    expect(subjectsOf(await listed('', production))).toEqual(['production'])
    const { headers } = await call(production, 'GET', PATH)
    const foreign = await call(own, 'GET', `${PATH}?cursor=${headers.get('mayfly-cursor') ?? ''}`)
    expectProblem(foreign, { status: 400, code: 'invalid-request', at: [{ parameter: 'cursor' }] })
  })

  it('is found by the labels of its inboxes, as they are now', async () => {
    const labelled = await createInbox(own, { labels: { run: '42', browser: 'firefox' } })
    const other = await createInbox(own, { labels: { run: '42' } })
    const plain = await createInbox(own)
    for (const { address } of [labelled, other, plain]) await send(own, address, mail('one'))
    for (const { id } of [labelled, other, plain]) await messagesOf(own, id, 1)
    const inboxesOf = async (query: string) => (await listed(query)).map(({ inbox_id: id }) => id).toSorted()
    expect(await inboxesOf('?label=run:42')).toEqual([labelled.id, other.id].toSorted())
    expect(await inboxesOf('?label=run:42&label=browser:firefox')).toEqual([labelled.id])
    expect(await inboxesOf('?label=run:4')).toEqual([])
    await call(own, 'PATCH', `/v1/inboxes/${plain.id}`, { body: { labels: { run: '43' } } })
    expect(await inboxesOf('?label=run:43')).toEqual([plain.id])
  })

  it('is found by filters, in a list of any page size', async () => {
    for (const number of [1, 2, 3, 4, 5]) {
      const source = mail(`Your code is 12345${number}`).replace('Subject', `X-Number: ${number}\r\nSubject`)
      await inboxWith(own, source)
    }
    expect(subjectsOf(await listed('?subject=123453&limit=1'))).toEqual(['Your code is 123453'])
    expect(await listed('?has_code=true&limit=2')).toHaveLength(5)
    expect(subjectsOf(await listed('?header=x-number:4'))).toEqual(['Your code is 123454'])
    expect(await listed('?header=x-number:&header=subject:code&to=SOMEONE')).toHaveLength(5)
    const all = await listed()
    const [third = '', fourth = ''] = all.slice(2).map((message) => message.received_at)
    const expected = all.filter(({ received_at: at }) => at >= third && at < fourth)
    expect(await listed(`?since=${third}&until=${fourth}`)).toEqual(expected)
    expect(await listed(`?since=${fourth}`)).toEqual(all.filter(({ received_at: at }) => at >= fourth))
  })

  it.each([
    { query: 'limit=0', at: 'limit' },
    { query: 'limit=101', at: 'limit' },
    { query: 'order=up', at: 'order' },
    { query: 'cursor=AAAA', at: 'cursor' },
    { query: 'cursor=', at: 'cursor' },
    { query: 'label=run', at: 'label' },
    { query: 'header=X-Tag', at: 'header' },
    { query: 'header=X%20Tag:a', at: 'header' },
    { query: 'since=yesterday', at: 'since' },
    { query: 'until=2026-02-30T00:00:00Z', at: 'until' },
    { query: 'nothing=1', at: 'nothing' },
  ])('refuses $query', async ({ query, at }) => {
    const answer = await call(own, 'GET', `${PATH}?${query}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: at }] })
  })

  it('is found by a search, which says what it does not know', async () => {
    const inbox = await createInbox(own, { labels: { run: '42' } })
    const subjects = ['Needle one', 'Needle two', 'Haystack']
    for (const subject of subjects) await send(own, inbox.address, mail(subject))
    await messagesOf(own, inbox.id, subjects.length)
    const found = async (q: string) => subjectsOf(await listed(`?limit=1&q=${encodeURIComponent(q)}`))
    expect(await found('needle label:run:42')).toEqual(['Needle one', 'Needle two'])
    expect(await found(`inbox:${inbox.address} -subject:two`)).toEqual(['Needle one', 'Haystack'])
    expect(await found('needle has:code')).toEqual([])
    for (const q of ['', 'form:app', 'after:yesterday', 'x'.repeat(1_001)]) {
      expectProblem(await call(own, 'GET', `${PATH}?q=${encodeURIComponent(q)}`), {
        ...{ status: 400, code: 'invalid-request', at: [{ parameter: 'q' }] },
      })
    }
  })

  it('requires a scope of mail', async () => {
    const reader = withKey(mayfly, await issueKey(admin, { scopes: ['read'] }))
    expect((await call(reader, 'GET', PATH)).status).toBe(200)
    const auditor = withKey(mayfly, await issueKey(admin, { scopes: ['audit'] }))
    expectProblem(await call(auditor, 'GET', PATH), { status: 403, code: 'missing-scope' })
  })
})
