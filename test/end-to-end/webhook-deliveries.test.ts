import { Webhook } from 'standardwebhooks'
import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import { call, createInbox, mail, messagesOf, pagesFrom, send, type InboxJson } from '#test/harness/client.js'
import {
  endpointsPerTest,
  startTcpEndpoint,
  type Endpoint,
  type HttpEndpoint,
  type ReceivedRequest,
} from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import {
  deliveriesOf,
  registerWebhook,
  type DeliveryJson,
  type NewWebhookJson,
  type WebhookJson,
} from '#test/harness/webhooks.js'

const GIGABYTE = 1_073_741_824
const LONGEST_ATTEMPT_MS = 15_000
const NOT_FOUND = { status: 404, code: 'not-found' }

interface ReceivedEvent {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

describe('a webhook', () => {
  let mayfly: Mayfly
  const endpoints = endpointsPerTest()
  const listening = endpoints.start

  beforeAll(async () => {
    mayfly = await startMayfly({ hasWebhooks: true, env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' } })
  })
  afterAll(() => mayfly.dispose())

  /** Starts an endpoint that answers these statuses in turn, and then the last one. */
  function startAnswering(...statuses: [number, ...number[]]): Promise<HttpEndpoint> {
    const left = [...statuses]
    return listening((response) => {
      response.statusCode = (left.length > 1 ? left.shift() : left[0]) ?? 200
      response.end('what the endpoint said')
    })
  }

  const register = (path: string, body: object) => registerWebhook(mayfly, path, body)

  const registerAt = ({ id }: InboxJson, { url }: Pick<Endpoint, 'url'>, facts: object = {}) =>
    register(`/v1/inboxes/${id}/webhooks`, { url, ...facts })

  const received = ({ requests }: HttpEndpoint, count: number) =>
    until(`${count} requests to the endpoint`, () => requests.length >= count).then(() =>
      requests.map(bodyOf),
    )

  const bodyOf = ({ body }: ReceivedRequest) => JSON.parse(body) as ReceivedEvent

  it('gets a mail as in a list, signed', async () => {
    const endpoint = await startAnswering(204)
    const inbox = await createInbox(mayfly)
    const { secret } = await registerAt(inbox, endpoint)
    await send(mayfly, inbox.address, mail('Your code is 481516'))
    const [body] = await received(endpoint, 1)
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    expect(body).toEqual({ type: 'message.received', timestamp: expect.any(String) as string, data: message })
    const [request] = endpoint.requests
    const headers = request?.headers as Record<string, string>
    expect(new Webhook(secret).verify(request?.body ?? '', headers)).toEqual(body)
    expect(headers['content-type']).toBe('application/json')
  })

  it('is retried after a failure, with the same id', async () => {
    const endpoint = await startAnswering(500, 200)
    const inbox = await createInbox(mayfly)
    await registerAt(inbox, endpoint)
    await send(mayfly, inbox.address, mail('again'))
    const [first, second] = await received(endpoint, 2)
    expect(second).toEqual(first)
    const [one, other] = endpoint.requests.map(({ headers }) => headers)
    expect(one?.['webhook-id']).toBe(other?.['webhook-id'])
    const seconds = Number(other?.['webhook-timestamp']) - Number(one?.['webhook-timestamp'])
    expect(seconds).toBeGreaterThanOrEqual(4)
  })

  it('is disabled if the endpoint answers 410, and enabled again by its owner', async () => {
    const endpoint = await startAnswering(410, 200)
    const inbox = await createInbox(mayfly)
    const { id } = await registerAt(inbox, endpoint)
    // Gets the same mails, which shows that they have been matched.
    const other = await startAnswering(200)
    await registerAt(inbox, other)
    const stateOf = async () => (await call<WebhookJson>(mayfly, 'GET', `/v1/webhooks/${id}`)).body
    await send(mayfly, inbox.address, mail('one'))
    await until('the webhook to be disabled', async () => (await stateOf()).state === 'disabled')
    expect((await stateOf()).disabled_reason).toBe('gone')
    await send(mayfly, inbox.address, mail('two'))
    await received(other, 2)
    await call(mayfly, 'PATCH', `/v1/webhooks/${id}`, { body: { state: 'active' } })
    await send(mayfly, inbox.address, mail('three'))
    const bodies = await received(endpoint, 2)
    expect(bodies.map(({ data }) => data.subject)).toEqual(['one', 'three'])
  })

  it('of an environment gets the events of its inboxes, except protected ones', async () => {
    const endpoint = await startAnswering(200)
    const guarded = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', {
      body: { password_protected: true },
    })
    const inbox = await createInbox(mayfly)
    const { id } = await register('/v1/webhooks', { url: endpoint.url })
    await send(mayfly, guarded.body.address, mail('behind a password'))
    await send(mayfly, inbox.address, mail('for all'))
    const bodies = await received(endpoint, 1)
    expect(bodies.map(({ data }) => data.subject)).toEqual(['for all'])
    await call(mayfly, 'DELETE', `/v1/webhooks/${id}`)
  })

  it('gets deletions and ends if it is registered for them', async () => {
    const endpoint = await startAnswering(200)
    const inbox = await createInbox(mayfly)
    await registerAt(inbox, endpoint, { events: ['message.deleted', 'inbox.deleted'] })
    await send(mayfly, inbox.address, mail('to be deleted'))
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${message?.id ?? ''}`)
    await received(endpoint, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    const bodies = await received(endpoint, 2)
    expect(bodies).toEqual([
      {
        type: 'message.deleted',
        timestamp: expect.any(String) as string,
        data: { id: message?.id, inbox_id: inbox.id, deleted_at: expect.any(String) as string },
      },
      {
        type: 'inbox.deleted',
        timestamp: expect.any(String) as string,
        data: { id: inbox.id, state: 'deleted', ended_at: expect.any(String) as string },
      },
    ])
  })

  it('with start_from=beginning gets existing mail, then new mail, each once', async () => {
    const endpoint = await startAnswering(200)
    const inbox = await createInbox(mayfly)
    for (const subject of ['one', 'two']) await send(mayfly, inbox.address, mail(subject))
    await messagesOf(mayfly, inbox.id, 2)
    await registerAt(inbox, endpoint, { start_from: 'beginning' })
    await send(mayfly, inbox.address, mail('three'))
    const bodies = await received(endpoint, 3)
    expect(bodies.map(({ data }) => data.subject).sort()).toEqual(['one', 'three', 'two'])
  })

  it('signs with both secrets during the grace of a rotation', async () => {
    const endpoint = await startAnswering(200)
    const inbox = await createInbox(mayfly)
    const { id, secret } = await registerAt(inbox, endpoint)
    const rotated = await call<NewWebhookJson>(mayfly, 'POST', `/v1/webhooks/${id}/secret/rotate`, {
      body: {},
    })
    await send(mayfly, inbox.address, mail('signed twice'))
    await received(endpoint, 1)
    const [request] = endpoint.requests
    const headers = request?.headers as Record<string, string>
    for (const each of [secret, rotated.body.secret]) new Webhook(each).verify(request?.body ?? '', headers)
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
  })

  it('whose endpoint does not answer delays no other', async () => {
    const silent = await listening(() => undefined)
    const good = await startAnswering(200)
    const [one, other] = [await createInbox(mayfly), await createInbox(mayfly)]
    for (let n = 0; n < 3; n += 1) await registerAt(one, silent)
    await registerAt(other, good)
    for (let n = 0; n < 20; n += 1) await send(mayfly, one.address, mail(`silence ${n}`))
    await received(silent, 3)
    await send(mayfly, other.address, mail('heard'))
    const bodies = await received(good, 1)
    expect(bodies[0]?.data.subject).toBe('heard')
  })

  describe('has a list of deliveries', () => {
    const untilIn = (state: string, id: string) =>
      until(
        `a delivery that has ${state}`,
        async () => (await deliveriesOf(mayfly, id, `?state=${state}`))[0],
      )

    it('with each attempt, and what the endpoint answered', async () => {
      const endpoint = await startAnswering(500, 201)
      const inbox = await createInbox(mayfly)
      const { id } = await registerAt(inbox, endpoint)
      await send(mayfly, inbox.address, mail('logged'))
      const [message] = await messagesOf(mayfly, inbox.id, 1)
      const delivery = await untilIn('succeeded', id)
      expect(delivery).toMatchObject({
        ...{ webhook_id: id, event: 'message.received', inbox_id: inbox.id, message_id: message?.id },
        ...{ replay_id: null, abandoned_reason: null, next_attempt_at: null },
        attempts: [
          { status: 500, error: 'answered 500', answer: 'what the endpoint said' },
          { status: 201, error: null, answer: 'what the endpoint said' },
        ],
      })
      expect(endpoint.requests[0]?.headers['webhook-id']).toBe(delivery.id)
      const one = await call<DeliveryJson>(mayfly, 'GET', `/v1/webhooks/${id}/deliveries/${delivery.id}`)
      expect(one.body).toEqual(delivery)
    })

    it('with the error of each misbehaving endpoint, and the time of the next attempt', async () => {
      const flood = await startTcpEndpoint((socket) => {
        socket.once('data', () => {
          socket.write(`HTTP/1.1 500 No\r\ncontent-length: ${GIGABYTE}\r\n\r\n`)
          const piece = Buffer.alloc(65_536, '.')
          const more = () => {
            while (!socket.destroyed && socket.write(piece));
          }
          socket.on('drain', more)
          more()
        })
      })
      const reset = await startTcpEndpoint((socket) => socket.once('data', () => socket.resetAndDestroy()))
      endpoints.add(flood, reset)
      const busy = await listening((response) =>
        response.writeHead(429, { 'retry-after': '3600' }).end('busy'),
      )
      const moved = await listening((response) => response.writeHead(301, { location: '/' }).end())
      const plain = await startAnswering(200)
      const noTls = { ...plain, url: plain.url.replace('http:', 'https:') }
      const expected: [endpoint: Endpoint, attempt: object, waitsMs: number][] = [
        [flood, { status: 500, error: 'answered 500', answer: '.'.repeat(1_024) }, 5_000],
        [
          reset,
          { status: null, error: 'reset: the connection ended before the response', answer: null },
          5_000,
        ],
        [busy, { status: 429, error: 'answered 429', answer: 'busy' }, 3_600_000],
        [moved, { status: 301, error: 'redirect: status 301, which is not followed' }, 5_000],
        [noTls, { status: null, error: expect.stringMatching(/^tls: /) as string }, 5_000],
      ]
      const inbox = await createInbox(mayfly)
      const ids = await Promise.all(expected.map(async ([{ url }]) => (await registerAt(inbox, { url })).id))
      await send(mayfly, inbox.address, mail('to all of them'))
      for (const [index, [, attempt, waitsMs]] of expected.entries()) {
        const delivery = await until('the first attempt', async () => {
          const [only] = await deliveriesOf(mayfly, ids[index] ?? '')
          return only !== undefined && only.attempts.length > 0 ? only : null
        })
        const [first] = delivery.attempts
        expect(first).toMatchObject(attempt)
        if (delivery.attempts.length > 1) continue
        const waits = Date.parse(delivery.next_attempt_at ?? '') - Date.parse(first?.time ?? '')
        expect(waits).toBeGreaterThanOrEqual(waitsMs)
        expect(waits).toBeLessThan(waitsMs * 1.1 + LONGEST_ATTEMPT_MS)
      }
      expect(plain.requests).toHaveLength(0)
      await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    })

    it('page by page, and by state', async () => {
      const endpoint = await startAnswering(200)
      const inbox = await createInbox(mayfly)
      const { id } = await registerAt(inbox, endpoint)
      for (let n = 0; n < 5; n += 1) await send(mayfly, inbox.address, mail(`page ${n}`))
      await until(
        'five that have succeeded',
        async () => (await deliveriesOf(mayfly, id, '?state=succeeded')).length === 5,
      )
      const newest = (await deliveriesOf(mayfly, id)).map((each) => each.id)
      const pages = await pagesFrom<DeliveryJson>(mayfly, `/v1/webhooks/${id}/deliveries?limit=2&order=asc`)
      expect(pages.map(({ body }) => body.length)).toEqual([2, 2, 1])
      expect(pages.flatMap(({ body }) => body.map((each) => each.id))).toEqual(newest.toReversed())
      expect(await deliveriesOf(mayfly, id, '?state=failed')).toEqual([])
    })

    it('with abandoned deliveries, and without answers for an ended inbox', async () => {
      // The next attempt comes after the inbox has ended.
      const endpoint = await listening((response) =>
        response.writeHead(429, { 'retry-after': '10' }).end('busy'),
      )
      const inbox = await createInbox(mayfly)
      const { id } = await registerAt(inbox, endpoint)
      await send(mayfly, inbox.address, mail('too late'))
      await received(endpoint, 1)
      await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
      const delivery = await untilIn('abandoned', id)
      expect(delivery).toMatchObject({
        abandoned_reason: 'inbox-ended',
        attempts: [{ status: 429, answer: null }],
      })
      expect(endpoint.requests).toHaveLength(1)
    })

    it('with test deliveries, which are sent once, even while it is disabled', async () => {
      const endpoint = await startAnswering(500)
      const { id } = await register('/v1/webhooks', { url: endpoint.url })
      await call(mayfly, 'PATCH', `/v1/webhooks/${id}`, { body: { state: 'disabled' } })
      const sample = await call<DeliveryJson>(mayfly, 'POST', `/v1/webhooks/${id}/test`)
      expect(sample.status).toBe(202)
      expect(sample.headers.get('location')).toBe(`/v1/webhooks/${id}/deliveries/${sample.body.id}`)
      expect(await untilIn('failed', id)).toMatchObject({
        id: sample.body.id,
        event: 'sample',
        inbox_id: null,
      })
      const [body] = await received(endpoint, 1)
      expect(body).toMatchObject({ type: 'message.received', data: { subject: 'A sample' } })
      await call(mayfly, 'DELETE', `/v1/webhooks/${id}`)
    })

    it('for its owner only', async () => {
      const inbox = await createInbox(mayfly)
      const { id } = await registerAt(inbox, await startAnswering(200))
      const { key } = await openAccount(mayfly, { plan: 'enterprise' })
      const stranger = withKey(mayfly, await issueKey(withKey(mayfly, key), { scopes: ['inboxes', 'admin'] }))
      for (const path of ['deliveries', 'deliveries/dlv_01jd6b90czf2jb8z0w6s8p1q3r']) {
        expectProblem(await call(stranger, 'GET', `/v1/webhooks/${id}/${path}`), NOT_FOUND)
      }
      expectProblem(await call(stranger, 'POST', `/v1/webhooks/${id}/test`), NOT_FOUND)
      expectProblem(
        await call(mayfly, 'GET', `/v1/webhooks/${id}/deliveries/dlv_01jd6b90czf2jb8z0w6s8p1q3r`),
        NOT_FOUND,
      )
    })
  })
})
