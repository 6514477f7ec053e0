import {
  call,
  createInbox,
  mail,
  messagesOf,
  only,
  send,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

type Protected = InboxJson & { password: string; password_protected: boolean }

const WITH_ATTACHMENT = [
  'Subject: guarded',
  'Content-Type: multipart/mixed; boundary=part',
  '',
  '--part',
  'Content-Type: text/plain; name=a.txt',
  'Content-Disposition: attachment; filename=a.txt',
  '',
  'attached',
  '--part--',
  '',
].join('\r\n')

/** Valid bodies of the requests that need one, by the end of their path. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /webhooks': { url: 'https://ci.example/' },
  'POST /messages': { from: 'app@example.com', subject: 'injected' },
  'PUT /faults': [],
}

describe('a protected inbox', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  const create = async () => {
    const made = await createInbox(mayfly, { password_protected: true })
    return made as Protected
  }

  const withPassword = (password: string) => ({ headers: { 'mayfly-inbox-password': password } })

  /** Creates a protected inbox with a mail. */
  const withMail = async () => {
    const inbox = await create()
    await send(mayfly, inbox.address, WITH_ATTACHMENT)
    const { id } = await until('its message', async () => {
      const path = `/v1/inboxes/${inbox.id}/messages`
      const { body } = await call<MessageJson[]>(mayfly, 'GET', path, withPassword(inbox.password))
      return body[0]
    })
    return { ...inbox, messageId: id }
  }

  it('has its password in the answer to its creation, and never again', async () => {
    const { password, ...shown } = await create()
    expect(password).toMatch(/^[0-9a-v]{26}$/)
    expect(shown.password_protected).toBe(true)
    expect((await call(mayfly, 'GET', `/v1/inboxes/${shown.id}`)).body).toEqual(shown)
    expect((await call<InboxJson[]>(mayfly, 'GET', '/v1/inboxes?limit=1')).body).toEqual([shown])
    expect((await create()).password).not.toBe(password)
  })

  /** Requests that show or change its mail; the message's id is inserted. */
  const CONTENT: [method: string, path: string][] = [
    ['GET', 'messages'],
    ['GET', 'messages/:message'],
    ['GET', 'messages/:message?raw=false'],
    ['GET', 'messages/:message/raw'],
    ['GET', 'messages/:message/attachments/0'],
    ['GET', 'messages/wait?timeout=0'],
    ['HEAD', 'messages/:message'],
    ['DELETE', 'messages/:message'],
    ['GET', 'webhooks'],
  ]

  describe.each(['/v1/inboxes', '/v1/emails'])('below %s', (family) => {
    let inbox: Protected & { messageId: string }

    beforeAll(async () => {
      inbox = await withMail()
    })

    it.each(CONTENT)('shows and changes nothing without its password: %s %s', async (method, path) => {
      const request = (options?: ReturnType<typeof withPassword>) =>
        call(mayfly, method, `${family}/${inbox.id}/${path.replace(':message', inbox.messageId)}`, options)
      const other = await create()
      const refusals = [
        { answer: await request(), code: 'inbox-password-required' },
        { answer: await request(withPassword('')), code: 'inbox-password-required' },
        { answer: await request(withPassword(other.password)), code: 'inbox-password-invalid' },
      ]
      for (const { answer, code } of refusals) {
        if (method === 'HEAD') expect(answer.status).toBe(403)
        else expectProblem(answer, { status: 403, code })
      }
      expect((await request(withPassword(inbox.password))).status).toBe(200)
    })

    it('does not reveal whether a message exists', async () => {
      const path = `${family}/${inbox.id}/messages/msg_00000000000000000000000000`
      expectProblem(await call(mayfly, 'GET', path), { status: 403, code: 'inbox-password-required' })
      const answer = await call(mayfly, 'GET', path, withPassword(inbox.password))
      expectProblem(answer, { status: 404, code: 'not-found' })
    })
  })

  it('requires its password on every path below it, except its history and certificate of erasure', async () => {
    const inbox = await withMail()
    const { body: document } = await call<{ paths: Record<string, object> }>(mayfly, 'GET', '/openapi.json')
    const open = [
      'GET /v1/inboxes/{}',
      // The key has the scope admin.
      'PATCH /v1/inboxes/{}',
      'DELETE /v1/inboxes/{}',
      'GET /v1/inboxes/{}/history',
      // Only of an inbox that has ended.
      'GET /v1/inboxes/{}/erasure',
    ]
    const requests = Object.entries(document.paths).flatMap(([path, operations]) => {
      const pattern = path.replace('/v1/emails', '/v1/inboxes').replaceAll(/\{\w+\}/g, '{}')
      if (!pattern.startsWith('/v1/inboxes/{}')) return []
      const methods = Object.keys(operations).map((method) => method.toUpperCase())
      return methods
        .filter((method) => !open.includes(`${method} ${pattern}`))
        .map((method) => ({ method, path }))
    })
    expect(requests.length).toBeGreaterThanOrEqual(2 * CONTENT.length - 4)
    for (const { method, path } of requests) {
      const values = [inbox.id, inbox.messageId, '0']
      const filled = path.replaceAll(/\{\w+\}/g, () => values.shift() ?? '')
      const body = BODIES[`${method} ${path.replace(/^.*\}/, '')}`]
      const answer = await call(mayfly, method, filled, body === undefined ? {} : { body })
      expect({ method, path, status: answer.status }).toEqual({ method, path, status: 403 })
      expectProblem(answer, { status: 403, code: 'inbox-password-required' })
    }
  })

  it.each(['letters in the other case', 'a part', 'a longer one', 'a very long one'])(
    'accepts only its password: %s',
    async (slip) => {
      const { id, password } = await create()
      const given: Record<string, string> = {
        'letters in the other case': password.toUpperCase(),
        'a part': password.slice(1),
        'a longer one': `${password}0`,
        'a very long one': password.repeat(300),
      }
      const answer = await call(mayfly, 'GET', `/v1/inboxes/${id}/messages`, withPassword(given[slip] ?? ''))
      expectProblem(answer, { status: 403, code: 'inbox-password-invalid' })
    },
  )

  it('refuses a key after ten wrong passwords within a minute, even with the right one', async () => {
    const [{ id, password }, other] = [await create(), await create()]
    const request = (inbox: string, given: string) =>
      call(mayfly, 'GET', `/v1/inboxes/${inbox}/messages`, withPassword(given))
    expect((await request(id, password)).status).toBe(200)
    const guesses = await Promise.all(Array.from({ length: 12 }, (_, guess) => request(id, `guess ${guess}`)))
    const statuses = guesses.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([...Array<number>(10).fill(403), 429, 429])
    for (const answer of [await request(id, 'another guess'), await request(id, password)]) {
      expectProblem(answer, { status: 429, code: 'too-many-password-attempts' })
      const seconds = Number(answer.headers.get('retry-after'))
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThanOrEqual(60)
    }
    expectProblem(await call(mayfly, 'GET', `/v1/inboxes/${id}/messages`), {
      status: 403,
      code: 'inbox-password-required',
    })
    expect((await request(other.id, other.password)).status).toBe(200)

    const body = { name: 'who guessed nothing', environment: 'development' }
    const issued = await call<{ secret: string }>(mayfly, 'POST', '/v1/keys', { body })
    const innocent = { ...mayfly, apiKey: issued.body.secret }
    const path = `/v1/inboxes/${id}/messages`
    expect((await call(innocent, 'GET', path, withPassword(password))).status).toBe(200)
    for (const given of ['a guess', password]) {
      const answer = await call(innocent, 'GET', path, withPassword(given))
      expectProblem(answer, { status: 429, code: 'too-many-password-attempts' })
    }
  })

  it('is answered 410 after its end with any password', async () => {
    const { id, password, messageId } = await withMail()
    const { status, body } = await call(mayfly, 'DELETE', `/v1/inboxes/${id}`, withPassword(password))
    expect(status).toBe(200)
    expect((await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)).body).toEqual(body)
    for (const path of ['messages', `messages/${messageId}/raw`]) {
      for (const options of [undefined, withPassword('wrong'), withPassword(password)]) {
        const answer = await call(mayfly, 'GET', `/v1/inboxes/${id}/${path}`, options)
        expectProblem(answer, { status: 410, code: 'inbox-deleted' })
      }
    }
  })

  it('is deleted only with its password or by a key of scope admin', async () => {
    const body = { name: 'no admin', environment: 'development', scopes: ['inboxes'] }
    const issued = await call<{ secret: string }>(mayfly, 'POST', '/v1/keys', { body })
    const other = { ...mayfly, apiKey: issued.body.secret }
    const { id, password } = await create()
    const path = `/v1/inboxes/${id}`
    expectProblem(await call(other, 'DELETE', path), { status: 403, code: 'inbox-password-required' })
    const wrong = await call(other, 'DELETE', path, withPassword('wrong'))
    expectProblem(wrong, { status: 403, code: 'inbox-password-invalid' })
    const one = await create()
    expect((await call(other, 'DELETE', `/v1/inboxes/${one.id}`, withPassword(one.password))).status).toBe(
      200,
    )
    expect((await call(other, 'GET', `${path}/messages`, withPassword(password))).status).toBe(200)
    expect((await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)).status).toBe(200)
  })

  it('does not affect other inboxes, which ignore a password', async () => {
    const { id, address } = await createInbox(mayfly)
    await send(mayfly, address, mail('open'))
    only(await messagesOf(mayfly, id, 1))
    const answer = await call(mayfly, 'GET', `/v1/inboxes/${id}/messages`, withPassword('any'))
    expect(answer.status).toBe(200)
  })
})
