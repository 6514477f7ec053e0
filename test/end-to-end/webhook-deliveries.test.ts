import { Webhook } from 'standardwebhooks'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint, type ReceivedRequest } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'

interface WebhookJson {
  id: string
  state: string
  disabled_reason: string | null
  secret: string
}

interface Told {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

describe('a webhook', () => {
  let mayfly: Mayfly
  const endpoints: HttpEndpoint[] = []

  beforeAll(async () => {
    mayfly = await startMayfly({ hasWebhooks: true, env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' } })
  })
  afterEach(async () => {
    await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.dispose()))
  })
  afterAll(() => mayfly.dispose())

  async function listening(...answers: Parameters<typeof startEndpoint>): Promise<HttpEndpoint> {
    const endpoint = await startEndpoint(...answers)
    endpoints.push(endpoint)
    return endpoint
  }

  /** Answers these statuses in turn, the last one from then on. */
  function saying(...statuses: [number, ...number[]]): Promise<HttpEndpoint> {
    const left = [...statuses]
    return listening((response) => {
      response.statusCode = (left.length > 1 ? left.shift() : left[0]) ?? 200
      response.end('what the endpoint said')
    })
  }

  async function register(path: string, body: object): Promise<WebhookJson> {
    const answer = await call<WebhookJson>(mayfly, 'POST', path, { body })
    expect(answer.status).toBe(201)
    return answer.body
  }

  const registerAt = ({ id }: InboxJson, { url }: HttpEndpoint, facts: object = {}) =>
    register(`/v1/inboxes/${id}/webhooks`, { url, ...facts })

  const told = ({ requests }: HttpEndpoint, count: number) =>
    until(`${count} requests to the endpoint`, () => requests.length >= count).then(() =>
      requests.map(bodyOf),
    )

  const bodyOf = ({ body }: ReceivedRequest) => JSON.parse(body) as Told

  it('is told of a mail as the list has it, signed', async () => {
    const endpoint = await saying(204)
    const inbox = await createInbox(mayfly)
    const { secret } = await registerAt(inbox, endpoint)
    await send(mayfly, inbox.address, mail('Your code is 481516'))
    const [body] = await told(endpoint, 1)
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    expect(body).toEqual({ type: 'message.received', timestamp: expect.any(String) as string, data: message })
    const [request] = endpoint.requests
    const headers = request?.headers as Record<string, string>
    expect(new Webhook(secret).verify(request?.body ?? '', headers)).toEqual(body)
    expect(headers['content-type']).toBe('application/json')
  })

  it('is tried again after a failure, under the same id', async () => {
    const endpoint = await saying(500, 200)
    const inbox = await createInbox(mayfly)
    await registerAt(inbox, endpoint)
    await send(mayfly, inbox.address, mail('again'))
    const [first, second] = await told(endpoint, 2)
    expect(second).toEqual(first)
    const [one, other] = endpoint.requests.map(({ headers }) => headers)
    expect(one?.['webhook-id']).toBe(other?.['webhook-id'])
    const seconds = Number(other?.['webhook-timestamp']) - Number(one?.['webhook-timestamp'])
    expect(seconds).toBeGreaterThanOrEqual(4)
  })

  it('is disabled where the endpoint is gone, and enabled again by its owner', async () => {
    const endpoint = await saying(410, 200)
    const inbox = await createInbox(mayfly)
    const { id } = await registerAt(inbox, endpoint)
    const stateOf = async () => (await call<WebhookJson>(mayfly, 'GET', `/v1/webhooks/${id}`)).body
    await send(mayfly, inbox.address, mail('one'))
    await until('the webhook to be disabled', async () => (await stateOf()).state === 'disabled')
    expect((await stateOf()).disabled_reason).toBe('gone')
    await send(mayfly, inbox.address, mail('two'))
    await messagesOf(mayfly, inbox.id, 2)
    await call(mayfly, 'PATCH', `/v1/webhooks/${id}`, { body: { state: 'active' } })
    await send(mayfly, inbox.address, mail('three'))
    const bodies = await told(endpoint, 2)
    expect(bodies.map(({ data }) => data.subject)).toEqual(['one', 'three'])
  })

  it('of an environment is told of its inboxes, but of those with a password', async () => {
    const endpoint = await saying(200)
    const guarded = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', {
      body: { password_protected: true },
    })
    const inbox = await createInbox(mayfly)
    const { id } = await register('/v1/webhooks', { url: endpoint.url })
    await send(mayfly, guarded.body.address, mail('behind a password'))
    await send(mayfly, inbox.address, mail('for all'))
    const bodies = await told(endpoint, 1)
    expect(bodies.map(({ data }) => data.subject)).toEqual(['for all'])
    await call(mayfly, 'DELETE', `/v1/webhooks/${id}`)
  })

  it('is told of deletions and ends where it asks for them', async () => {
    const endpoint = await saying(200)
    const inbox = await createInbox(mayfly)
    await registerAt(inbox, endpoint, { events: ['message.deleted', 'inbox.deleted'] })
    await send(mayfly, inbox.address, mail('to be deleted'))
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${message?.id ?? ''}`)
    await told(endpoint, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    const bodies = await told(endpoint, 2)
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

  it('that starts from the beginning is told of what its inbox holds, then of what comes, each once', async () => {
    const endpoint = await saying(200)
    const inbox = await createInbox(mayfly)
    for (const subject of ['one', 'two']) await send(mayfly, inbox.address, mail(subject))
    await messagesOf(mayfly, inbox.id, 2)
    await registerAt(inbox, endpoint, { start_from: 'beginning' })
    await send(mayfly, inbox.address, mail('three'))
    const bodies = await told(endpoint, 3)
    expect(bodies.map(({ data }) => data.subject).sort()).toEqual(['one', 'three', 'two'])
  })

  it('signs with both secrets during the grace of a rotation', async () => {
    const endpoint = await saying(200)
    const inbox = await createInbox(mayfly)
    const { id, secret } = await registerAt(inbox, endpoint)
    const rotated = await call<WebhookJson>(mayfly, 'POST', `/v1/webhooks/${id}/secret/rotate`, { body: {} })
    await send(mayfly, inbox.address, mail('signed twice'))
    await told(endpoint, 1)
    const [request] = endpoint.requests
    const headers = request?.headers as Record<string, string>
    for (const each of [secret, rotated.body.secret]) new Webhook(each).verify(request?.body ?? '', headers)
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
  })

  it('that nobody answers delays no other', async () => {
    const silent = await listening(() => undefined)
    const good = await saying(200)
    const [one, other] = [await createInbox(mayfly), await createInbox(mayfly)]
    for (let n = 0; n < 3; n += 1) await registerAt(one, silent)
    await registerAt(other, good)
    for (let n = 0; n < 20; n += 1) await send(mayfly, one.address, mail(`silence ${n}`))
    await told(silent, 10)
    await send(mayfly, other.address, mail('heard'))
    const bodies = await told(good, 1)
    expect(bodies[0]?.data.subject).toBe('heard')
  })
})
