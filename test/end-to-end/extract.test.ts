import { call, createInbox, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'

interface Extracting {
  subject: string
  extracted?: { text: string; groups: (string | null)[] }[]
}

const ORDER = { text: 'order A-12', groups: ['A', '12'] }
const PATTERN = 'order ([A-Z])-(\\d+)'

function mail(subject: string, type: string, body: string): string {
  return [`Subject: ${subject}`, `Content-Type: text/${type}; charset=utf-8`, '', body].join('\r\n')
}

describe('extract', () => {
  let mayfly: SharedMayfly
  let inbox: InboxJson

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    inbox = await createInbox(mayfly, { labels: { suite: 'extract' } })
    await send(mayfly, inbox.address, mail('Other', 'plain', 'Nothing here'))
    await send(mayfly, inbox.address, mail('Your order A-12', 'plain', 'An order A-12, an order B-7'))
    await send(mayfly, inbox.address, mail('Rich', 'html', '<p title="order Z-1">An <b>order</b> C-3</p>'))
    await messagesOf(mayfly, inbox.id, 3)
  })

  const get = <Answer = Extracting>(path: string, query: Record<string, string>) =>
    call<Answer>(mayfly, 'GET', `${path}?${new URLSearchParams(query).toString()}`)
  const messages = () => `/v1/inboxes/${inbox.id}/messages`

  it('adds the different matches in subject, text and visible text to each message of a list', async () => {
    const expected = [
      ['Other', []],
      ['Your order A-12', [ORDER, { text: 'order B-7', groups: ['B', '7'] }]],
      ['Rich', [{ text: 'order C-3', groups: ['C', '3'] }]],
    ]
    // The second list of the inbox reads messages from memory.
    for (const path of [messages(), messages(), '/v1/messages']) {
      const { status, body } = await get<Extracting[]>(path, { extract: PATTERN, recipient: inbox.address })
      expect(status).toBe(200)
      expect(body.map(({ subject, extracted }) => [subject, extracted])).toEqual(expected)
    }
    const { body } = await get<Extracting[]>(messages(), {})
    expect(body.every((message) => !('extracted' in message))).toBe(true)
  })

  it('adds them to a single message', async () => {
    const { body } = await get<{ id: string }[]>(messages(), { subject: 'order' })
    for (const raw of ['true', 'false']) {
      const message = await get(`${messages()}/${body[0]?.id}`, { extract: 'B-(.)', raw })
      expect(message.body).toMatchObject({ extracted: [{ text: 'B-7', groups: ['7'] }] })
    }
  })

  it('is required by a wait, which says if it has no match', async () => {
    for (const path of [`${messages()}/wait`, '/v1/messages/wait']) {
      const wanted = { recipient: inbox.address, timeout: '0' }
      const { body } = await get(path, { ...wanted, extract: PATTERN })
      expect(body).toMatchObject({ subject: 'Your order A-12', extracted: [ORDER, {}] })
      const newest = await get(path, { ...wanted, extract: PATTERN, order: 'desc' })
      expect(newest.body).toMatchObject({ subject: 'Rich' })
      const answer = await get(path, { ...wanted, extract: 'order Z', subject: 'Rich' })
      expectProblem(answer, { status: 404, code: 'no-matching-message' })
      expect(answer.body).toMatchObject({
        nearest: [
          { subject: 'Rich', mismatches: ['extract has no match'] },
          // An expression is only searched in a message that matches otherwise.
          { subject: 'Your order A-12', mismatches: [expect.stringMatching(/^subject/)] },
          { subject: 'Other', mismatches: [expect.stringMatching(/^subject/)] },
        ],
      })
    }
  })

  it.each([
    { extract: 'a(b', detail: /missing closing \), at position 1/ },
    { extract: '(?=a)', detail: /at position 0/ },
    { extract: `${'(a{1000}){1}'.repeat(38)}a{2}{3}`, detail: /at position 457/ },
    { extract: `${'[\\p{L}]{1000}'.repeat(30)}\\1`, detail: /at position 390/ },
    { extract: '', detail: /1 to 500 characters/ },
    { extract: 'a'.repeat(501), detail: /1 to 500 characters/ },
  ])('refuses $extract', async ({ extract, detail }) => {
    const { body } = await get<{ id: string }[]>(messages(), {})
    const paths = [messages(), `${messages()}/wait`, `${messages()}/${body[0]?.id}`]
    for (const path of [...paths, '/v1/messages', '/v1/messages/wait']) {
      const answer = await get<{ detail: string }>(path, { extract })
      expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: 'extract' }] })
      expect(answer.body.detail).toMatch(detail)
    }
  })

  it('lets other requests run while it takes long, and ends', async () => {
    const slow = await createInbox(mayfly)
    await send(mayfly, slow.address, mail('Slow', 'plain', `${'ab c'.repeat(15)}\r\n`.repeat(20_000)))
    await messagesOf(mayfly, slow.id, 1)
    const progress = { isDone: false }
    const extract = '(?s).{1000}.{1000}c{5}'
    const waiting = get(`/v1/inboxes/${slow.id}/messages/wait`, { extract, timeout: '0' }).finally(
      () => (progress.isDone = true),
    )
    let answered = 0
    for (; !progress.isDone; answered += 1) {
      expect((await get(`/v1/inboxes/${inbox.id}`, {})).status).toBe(200)
    }
    const answer = await waiting
    expectProblem(answer, { status: 404, code: 'no-matching-message' })
    expect(answer.body).toMatchObject({
      nearest: [{ mismatches: ['extract took more time or memory than allowed'] }],
    })
    // The search takes five seconds. If it blocked the process, one or two would be answered.
    expect(answered).toBeGreaterThan(10)
    expectProblem(await get(`/v1/inboxes/${slow.id}/messages`, { extract }), {
      status: 400,
      code: 'invalid-request',
      at: [{ parameter: 'extract' }],
    })
  }, 60_000)
})
