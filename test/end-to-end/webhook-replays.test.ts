import { randomUUID } from 'node:crypto'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { type HttpEndpoint, type ReceivedRequest, endpointsPerTest } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { registerWebhook, type NewWebhookJson } from '#test/harness/webhooks.js'

interface ReplayJson {
  id: string
  webhook_id: string
  state: 'running' | 'completed' | 'cancelled'
  requested: number
  done: number
  created_at: string
}

interface DeliveryJson {
  id: string
  message_id: string | null
  replay_id: string | null
  state: string
  abandoned_reason: string | null
}

const LONG_AGO = '2020-01-01T00:00:00Z'
const FAR_AHEAD = '2999-01-01T00:00:00+01:00'
const EVERYTHING = { from: LONG_AGO, to: FAR_AHEAD }

describe('a replay', () => {
  let mayfly: Mayfly
  const endpoints = endpointsPerTest()
  const listening = endpoints.start

  beforeAll(async () => {
    mayfly = await startMayfly({ hasWebhooks: true, env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' } })
  })
  afterAll(() => mayfly.dispose())

  async function inboxWithMail(...subjects: string[]): Promise<InboxJson> {
    const inbox = await createInbox(mayfly)
    for (const subject of subjects) await send(mayfly, inbox.address, mail(subject))
    await messagesOf(mayfly, inbox.id, subjects.length)
    return inbox
  }

  const registerAt = ({ id }: InboxJson, { url }: HttpEndpoint, facts: object = {}) =>
    registerWebhook(mayfly, `/v1/inboxes/${id}/webhooks`, { url, ...facts })

  const request = (webhook: NewWebhookJson, body: object, headers: Record<string, string> = {}) =>
    call<ReplayJson>(mayfly, 'POST', `/v1/webhooks/${webhook.id}/replays`, { body, headers })

  async function replay(webhook: NewWebhookJson, body: object): Promise<ReplayJson> {
    const answer = await request(webhook, body)
    expect(answer.status).toBe(202)
    expect(answer.headers.get('location')).toBe(`/v1/webhooks/${webhook.id}/replays/${answer.body.id}`)
    return answer.body
  }

  const look = async ({ webhook_id: webhookId, id }: ReplayJson) =>
    (await call<ReplayJson>(mayfly, 'GET', `/v1/webhooks/${webhookId}/replays/${id}`)).body

  async function completed(started: ReplayJson): Promise<ReplayJson> {
    await until('the replay to complete', async () => (await look(started)).state === 'completed')
    return look(started)
  }

  const subjectOf = ({ body }: ReceivedRequest) =>
    (JSON.parse(body) as { data: { subject: string } }).data.subject

  const subjectsAt = async (endpoint: HttpEndpoint, count: number) => {
    await until(`${count} requests to the endpoint`, () => endpoint.requests.length >= count)
    return endpoint.requests.map(subjectOf).sort()
  }

  const deliveriesOf = async ({ id }: NewWebhookJson, query = '') =>
    (await call<DeliveryJson[]>(mayfly, 'GET', `/v1/webhooks/${id}/deliveries?limit=100${query}`)).body

  it('sends all events of a time range again, with the same event ids', async () => {
    const endpoint = await listening()
    const inbox = await createInbox(mayfly)
    const webhook = await registerAt(inbox, endpoint)
    for (const subject of ['one', 'two']) await send(mayfly, inbox.address, mail(subject))
    await subjectsAt(endpoint, 2)
    const started = await replay(webhook, EVERYTHING)
    expect(started).toMatchObject({ id: expect.stringMatching(/^rpl_/) as string, webhook_id: webhook.id })
    expect(await completed(started)).toMatchObject({ requested: 2, done: 2 })
    expect(await subjectsAt(endpoint, 4)).toEqual(['one', 'one', 'two', 'two'])
    const ids = new Set(endpoint.requests.map(({ headers }) => headers['webhook-id']))
    expect(ids.size).toBe(2)
    const replayed = (await deliveriesOf(webhook)).filter(({ replay_id }) => replay_id === started.id)
    expect(replayed.map(({ state }) => state)).toEqual(['succeeded', 'succeeded'])
  })

  it('sends mail from before the registration, within its time range only', async () => {
    const endpoint = await listening()
    const inbox = await inboxWithMail('before')
    const from = new Date().toISOString()
    await send(mayfly, inbox.address, mail('within'))
    await messagesOf(mayfly, inbox.id, 2)
    const webhook = await registerAt(inbox, endpoint)
    const started = await replay(webhook, { from, to: FAR_AHEAD })
    expect(await completed(started)).toMatchObject({ requested: 1, done: 1 })
    expect(await subjectsAt(endpoint, 1)).toEqual(['within'])
    const none = await replay(webhook, { from: LONG_AGO, to: '2020-01-02T00:00:00Z' })
    expect(await completed(none)).toMatchObject({ requested: 0, done: 0 })
  })

  it('of an environment sends events of all its inboxes, except protected ones', async () => {
    const endpoint = await listening()
    const from = new Date().toISOString()
    await inboxWithMail('of the first')
    await inboxWithMail('of the second')
    const guarded = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', {
      body: { password_protected: true },
    })
    await send(mayfly, guarded.body.address, mail('behind a password'))
    const webhook = await registerWebhook(mayfly, '/v1/webhooks', { url: endpoint.url })
    expect(await completed(await replay(webhook, { from, to: FAR_AHEAD }))).toMatchObject({ requested: 2 })
    expect(await subjectsAt(endpoint, 2)).toEqual(['of the first', 'of the second'])
    await call(mayfly, 'DELETE', `/v1/webhooks/${webhook.id}`)
  })

  it('sends deletions and ends again', async () => {
    const endpoint = await listening()
    const inbox = await inboxWithMail('to be deleted')
    const webhook = await registerAt(inbox, endpoint, { events: ['message.deleted'] })
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${message?.id ?? ''}`)
    await until('the deletion to be delivered', () => endpoint.requests.length === 1)
    expect(await completed(await replay(webhook, EVERYTHING))).toMatchObject({ requested: 1, done: 1 })
    const [first, second] = endpoint.requests.map(({ body }) => body)
    expect(second).toBe(first)
  })

  it('sends single deliveries', async () => {
    const endpoint = await listening()
    const inbox = await createInbox(mayfly)
    const webhook = await registerAt(inbox, endpoint)
    for (const subject of ['one', 'two']) await send(mayfly, inbox.address, mail(subject))
    await subjectsAt(endpoint, 2)
    const two = endpoint.requests.find((request) => subjectOf(request) === 'two')
    const again = await replay(webhook, { delivery_ids: [two?.headers['webhook-id']] })
    expect(await completed(again)).toMatchObject({ requested: 1, done: 1 })
    expect(await subjectsAt(endpoint, 3)).toEqual(['one', 'two', 'two'])
    const failed = await replay(webhook, { delivery_ids: [two?.headers['webhook-id']], only_failed: true })
    expect(await completed(failed)).toMatchObject({ requested: 0, done: 0 })
  })

  it('sends only failed deliveries if requested', async () => {
    const left = [200, 410]
    const endpoint = await listening((response) => {
      response.statusCode = left.shift() ?? 200
      response.end()
    })
    const inbox = await createInbox(mayfly)
    const webhook = await registerAt(inbox, endpoint)
    await send(mayfly, inbox.address, mail('taken'))
    await subjectsAt(endpoint, 1)
    await send(mayfly, inbox.address, mail('refused'))
    const state = async () =>
      (await call<{ state: string }>(mayfly, 'GET', `/v1/webhooks/${webhook.id}`)).body
    await until('the webhook to be disabled', async () => (await state()).state === 'disabled')
    await until(
      'the refusal to show',
      async () => (await deliveriesOf(webhook, '&state=failed')).length === 1,
    )
    const started = await replay(webhook, { ...EVERYTHING, only_failed: true })
    expect(started).toMatchObject({ state: 'running', requested: 0, done: 0 })
    // While the webhook is disabled, no deliveries are requested.
    await call(mayfly, 'PATCH', `/v1/webhooks/${webhook.id}`, { body: { state: 'active' } })
    expect(await completed(started)).toMatchObject({ requested: 1, done: 1 })
    expect(await subjectsAt(endpoint, 3)).toEqual(['refused', 'refused', 'taken'])
  })

  it('sends nothing more after it is cancelled', async () => {
    const held: (() => void)[] = []
    const endpoint = await listening((response) => held.push(() => response.end()))
    const subjects = Array.from({ length: 30 }, (_, index) => `mail ${index}`)
    const inbox = await inboxWithMail(...subjects)
    const webhook = await registerAt(inbox, endpoint)
    const started = await replay(webhook, EVERYTHING)
    await until('its place to be taken', () => held.length === 1)
    const path = `/v1/webhooks/${webhook.id}/replays/${started.id}`
    const cancelled = await call<ReplayJson>(mayfly, 'DELETE', path)
    expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled'])
    for (const answer of held) answer()
    await until('the rest to be abandoned', async () => {
      const { requested, done } = await look(started)
      return requested === done
    })
    expect(endpoint.requests).toHaveLength(1)
    const abandoned = (await deliveriesOf(webhook)).filter(({ state }) => state === 'abandoned')
    expect(new Set(abandoned.map(({ abandoned_reason }) => abandoned_reason))).toEqual(
      new Set(['replay-cancelled']),
    )
    expect((await call<ReplayJson>(mayfly, 'DELETE', path)).body.state).toBe('cancelled')
  })

  it('from a registration is listed with the others, newest first', async () => {
    const endpoint = await listening()
    const webhook = await registerAt(await inboxWithMail('held'), endpoint, { start_from: 'beginning' })
    await subjectsAt(endpoint, 1)
    const list = async () =>
      (await call<ReplayJson[]>(mayfly, 'GET', `/v1/webhooks/${webhook.id}/replays`)).body
    await until('it to be through', async () => (await list())[0]?.state === 'completed')
    const [first] = await list()
    expect(first).toMatchObject({ requested: 1, done: 1 })
    const [delivery] = await deliveriesOf(webhook)
    expect(delivery).toMatchObject({ id: endpoint.requests[0]?.headers['webhook-id'] })
    const started = await replay(webhook, EVERYTHING)
    const [newest, oldest] = await list()
    expect([newest?.id, oldest?.id]).toEqual([started.id, first?.id])
    expect(await completed(started)).toMatchObject({ requested: 1 })
  })

  it('is created once for one Idempotency-Key', async () => {
    const endpoint = await listening()
    const webhook = await registerAt(await inboxWithMail('once'), endpoint)
    const headers = { 'idempotency-key': randomUUID() }
    const [one, other] = [
      await request(webhook, EVERYTHING, headers),
      await request(webhook, EVERYTHING, headers),
    ]
    expect(other.body.id).toBe(one.body.id)
    expect(await completed(one.body)).toMatchObject({ requested: 1, done: 1 })
    expect(await subjectsAt(endpoint, 1)).toEqual(['once'])
  })

  it('over the limit of running replays is refused until one is cancelled', async () => {
    const endpoint = await listening()
    const webhook = await registerAt(await inboxWithMail('later'), endpoint)
    await call(mayfly, 'PATCH', `/v1/webhooks/${webhook.id}`, { body: { state: 'disabled' } })
    const running: ReplayJson[] = []
    for (let count = 0; count < 5; count += 1) running.push(await replay(webhook, EVERYTHING))
    const refusal = expectProblem(await request(webhook, EVERYTHING), {
      status: 400,
      code: 'invalid-request',
    })
    expect(refusal.detail).toMatch(/5 running replays/)
    await call(mayfly, 'DELETE', `/v1/webhooks/${webhook.id}/replays/${running[0]?.id ?? ''}`)
    await replay(webhook, EVERYTHING)
  })

  it.each([
    { body: {}, says: /from and to, or delivery_ids/ },
    { body: { from: LONG_AGO }, says: /from and to, or delivery_ids/ },
    { body: { ...EVERYTHING, delivery_ids: ['dlv_01jd6b90czf2jb8z0w6s8p1q3r'] }, says: /either/ },
    { body: { from: FAR_AHEAD, to: LONG_AGO }, says: /from must be before to/ },
    { body: { from: LONG_AGO, to: LONG_AGO }, says: /from must be before to/ },
    { body: { from: 'yesterday', to: FAR_AHEAD }, says: /RFC 3339/ },
    { body: { ...EVERYTHING, only_failed: 'yes' }, says: /only_failed must be true or false/ },
    { body: { delivery_ids: [] }, says: /1 to 100/ },
    { body: { delivery_ids: ['dlv_1'] }, says: /1 to 100/ },
    { body: { delivery_ids: ['dlv_01jd6b90czf2jb8z0w6s8p1q3r'] }, says: /There is no delivery/, status: 404 },
    { body: { ...EVERYTHING, of: 'all' }, says: /of/ },
  ])('is refused with $body', async ({ body, says, status = 400 }) => {
    const endpoint = await listening()
    const webhook = await registerAt(await createInbox(mayfly), endpoint)
    const answer = await request(webhook, body)
    const code = status === 404 ? 'not-found' : 'invalid-request'
    expect(JSON.stringify(expectProblem(answer, { status, code }))).toMatch(says)
  })
})
