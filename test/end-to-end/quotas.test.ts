import { randomUUID } from 'node:crypto'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  create as make,
  createInbox,
  mail,
  messagesOf,
  send,
  type Answer,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { answerToRcpt, converse } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

const NAMES = [
  ...['inboxes', 'inboxes-per-day', 'messages-per-day', 'stored-bytes'],
  ...['webhooks', 'domains', 'members'],
]

let mayfly: SharedMayfly

beforeAll(async () => {
  mayfly = await sharedMayfly()
})

async function accountWith(limits: object): Promise<Target> {
  return (await ownedAccount(limits)).own
}

/** An account with the key of its owner, and one without admin rights. */
async function ownedAccount(limits: object): Promise<{ admin: Target; own: Target }> {
  const { key } = await openAccount(mayfly.operator, { plan: 'enterprise', limits })
  const admin = withKey(mayfly, key)
  return { admin, own: withKey(mayfly, await issueKey(admin)) }
}

function createMany(target: Target, count: number): Promise<Answer<unknown>> {
  return call(target, 'POST', '/v1/inboxes/bulk', { body: { count } })
}

async function activeInboxes(target: Target): Promise<number> {
  return (await call<InboxJson[]>(target, 'GET', '/v1/inboxes?limit=1000')).body.length
}

function expectExceeded(answer: Answer<unknown>, members: object): void {
  expect(expectProblem(answer, { status: 429, code: 'quota-exceeded' })).toMatchObject(members)
  expect(answer.headers.get('retry-after')).toBe('60')
}

describe('the quota of inboxes', () => {
  it('refuses new ones, and nothing else, until others end', async () => {
    const own = await accountWith({ max_inboxes: 3 })
    const headers = { 'idempotency-key': randomUUID() }
    const first = await call<InboxJson>(own, 'POST', '/v1/inboxes', { body: {}, headers })
    await createInbox(own)
    expectExceeded(await createMany(own, 2), { quota: 'inboxes', limit: 3, used: 2 })
    expect(await activeInboxes(own)).toBe(2)
    expect((await createMany(own, 1)).status).toBe(201)

    expectExceeded(await call(own, 'POST', '/v1/inboxes'), { quota: 'inboxes', limit: 3, used: 3 })
    const path = `/v1/inboxes/${first.body.id}`
    expect((await call(own, 'PATCH', path, { body: { duration: '2h' } })).status).toBe(200)
    expect((await call(own, 'POST', '/v1/inboxes', { body: {}, headers })).body).toEqual(first.body)
    await send(own, first.body.address, mail('accepted'))

    expect((await call(own, 'DELETE', path)).status).toBe(200)
    await createInbox(own)
    expectExceeded(await call(own, 'POST', '/v1/inboxes'), { used: 3 })
  })

  it('is not exceeded by several bulk requests at once', async () => {
    const own = await accountWith({ max_inboxes: 120 })
    const answers = await Promise.all(Array.from({ length: 5 }, () => createMany(own, 50)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 429, 429, 429])
    expect(await activeInboxes(own)).toBe(100)
  })
})

describe('the quota of stored bytes', () => {
  const source = mail('large', 'x'.repeat(70).concat('\r\n').repeat(20))
  const size = Buffer.byteLength(source)

  function inject(target: Target, { id }: InboxJson): Promise<Answer<MessageJson>> {
    const headers = { 'content-type': 'message/rfc822' }
    return call(target, 'POST', `/v1/inboxes/${id}/messages`, { body: Buffer.from(source), headers })
  }

  it('refuses messages that the API puts in until others are deleted', async () => {
    const own = await accountWith({ max_stored_bytes: 3 * size - 1 })
    const [inbox, other] = [await createInbox(own), await createInbox(own)]
    const first = await inject(own, inbox)
    expect((await inject(own, other)).status).toBe(201)
    expectExceeded(await inject(own, inbox), { quota: 'stored-bytes', limit: 3 * size - 1, used: 2 * size })
    const path = `/v1/inboxes/${inbox.id}/messages/${first.body.id}`
    expect((await call(own, 'GET', path)).status).toBe(200)
    expect((await call(own, 'DELETE', path)).status).toBe(200)
    expect((await inject(own, inbox)).status).toBe(201)
    expectExceeded(await inject(own, inbox), { used: 2 * size })
  })

  it('refuses mail of the whole account until an inbox is deleted', async () => {
    const own = await accountWith({ max_stored_bytes: 3 * size - 1 })
    const [inbox, other] = [await createInbox(own), await createInbox(own)]
    await send(own, inbox.address, source)
    await send(own, other.address, source)
    await messagesOf(own, other.id, 1)
    await messagesOf(own, inbox.id, 1)
    await expect(send(own, other.address, source)).rejects.toThrow(/452 4\.2\.2/)
    expect((await call(own, 'DELETE', `/v1/inboxes/${other.id}`)).status).toBe(200)
    await send(own, inbox.address, source)
  })

  it('refuses a recipient if it is used up, or the declared size is too large', async () => {
    const own = await accountWith({ max_stored_bytes: size })
    const inbox = await createInbox(own)
    const replyTo = async (parameters: string) => {
      const lines = [
        'EHLO tests',
        `MAIL FROM:<sender@example.com>${parameters}`,
        `RCPT TO:<${inbox.address}>`,
      ]
      return (await converse(own.smtpPort, lines))[3]
    }
    expect(await replyTo(` SIZE=${size + 1}`)).toMatch(/^452 4\.2\.2/)
    expect(await replyTo(` SIZE=${size}`)).toMatch(/^250/)
    expect((await inject(own, inbox)).status).toBe(201)
    // The SMTP server reads what the API has accepted within a second.
    await until('the quota to be used up', async () => (await replyTo(''))?.startsWith('452 4.2.2'))
  })
})

describe('a quota that the owner sets', () => {
  const whole = { environment: null, key_id: null, resets_at: null }
  const ofDay = { ...whole, resets_at: expect.stringMatching(/T00:00:00\.000Z$/) as string }
  const set = (target: Target, name: string, limit: unknown) =>
    call(target, 'PUT', `/v1/quotas/${name}`, { body: { limit } })

  it('is applied at once, and ends with null', async () => {
    const { admin, own } = await ownedAccount({ max_inboxes: 3, max_stored_bytes: 5_000 })
    await createInbox(own)
    expect((await call(own, 'GET', '/v1/quotas')).body).toEqual([
      { ...whole, name: 'inboxes', limit: 3, used: 1 },
      { ...ofDay, name: 'inboxes-per-day', limit: 1_000_000_000, used: 1 },
      { ...ofDay, name: 'messages-per-day', limit: 1_000_000_000, used: 0 },
      { ...whole, name: 'stored-bytes', limit: 5_000, used: 0 },
      { ...whole, name: 'webhooks', limit: 100_000, used: 0 },
      { ...whole, name: 'domains', limit: 1_000, used: 0 },
      { ...whole, name: 'members', limit: 1_000, used: 0 },
    ])
    const inboxes = { ...whole, name: 'inboxes', used: 1 }
    expect(await set(admin, 'inboxes', 1)).toMatchObject({ status: 200, body: { ...inboxes, limit: 1 } })
    expectExceeded(await call(own, 'POST', '/v1/inboxes'), { quota: 'inboxes', limit: 1, used: 1 })
    // Less than what is used.
    expect(await set(admin, 'inboxes', 0)).toMatchObject({ status: 200, body: { ...inboxes, limit: 0 } })
    expect(await activeInboxes(own)).toBe(1)
    expect(await set(admin, 'inboxes', null)).toMatchObject({ status: 200, body: { ...inboxes, limit: 3 } })
    await createInbox(own)
  })

  it.each([
    { quota: 'webhooks', path: '/v1/webhooks', body: () => ({ url: 'https://ci.example/' }) },
    { quota: 'domains', path: '/v1/domains', body: () => ({ hosted: true }) },
    {
      quota: 'members',
      path: '/v1/invitations',
      body: (n: number) => ({ email: `${n}@x.example`, role: 'viewer' }),
    },
  ])('limits $quota', async ({ quota, path, body }) => {
    const { admin } = await ownedAccount({ [`max_${quota}`]: 2 })
    const made = await make<{ id: string }>(admin, path, body(1))
    await make(admin, path, body(2))
    expectExceeded(await call(admin, 'POST', path, { body: body(3) }), {
      ...{ quota, environment: null, key_id: null, limit: 2, used: 2 },
    })
    expect((await call(admin, 'DELETE', `${path}/${made.id}`)).status).toBe(200)
    await make(admin, path, body(4))
    expect(await set(admin, quota, 1)).toMatchObject({ status: 200, body: { limit: 1, used: 2 } })
    expectExceeded(await call(admin, 'POST', path, { body: body(5) }), { quota, limit: 1, used: 2 })
    expect((await set(admin, quota, 3)).status).toBe(400)
    const scoped = { body: { limit: 1, environment: 'staging' } }
    expectProblem(await call(admin, 'PUT', `/v1/quotas/${quota}`, scoped), {
      ...{ status: 400, code: 'invalid-request', detail: /of the whole account/ },
    })
  })

  it('is applied to mail too', async () => {
    const { admin, own } = await ownedAccount({})
    const inbox = await createInbox(own)
    await send(own, inbox.address, mail('accepted'))
    expect((await set(admin, 'stored-bytes', 0)).status).toBe(200)
    await until('mail to be refused', async () =>
      (await answerToRcpt(own, inbox.address)).startsWith('452 4.2.2'),
    )
  })

  it('limits an environment or a key, beside the whole account', async () => {
    const { admin } = await ownedAccount({ max_inboxes: 4 })
    const [key, otherKey] = [await issueKey(admin), await issueKey(admin)]
    const [one, two] = [withKey(mayfly, key), withKey(mayfly, otherKey)]
    const elsewhere = withKey(mayfly, await issueKey(admin, { environment: 'elsewhere' }))
    const inbox = await createInbox(one)
    const of =
      (scope: object) =>
      (body: object, name = 'inboxes') =>
        call(admin, 'PUT', `/v1/quotas/${name}`, { body: { ...scope, ...body } })
    const [ofKey, ofStaging] = [of({ key_id: key.id }), of({ environment: 'staging' })]
    const create = (target: Target) => call(target, 'POST', '/v1/inboxes')

    expect((await ofKey({ limit: 1 })).body).toEqual({
      ...{ name: 'inboxes', environment: null, key_id: key.id, limit: 1, used: 1, resets_at: null },
    })
    expectExceeded(await create(one), { environment: null, key_id: key.id, limit: 1, used: 1 })
    expect((await create(two)).status).toBe(201)
    expect((await ofStaging({ limit: 2 })).body).toMatchObject({ environment: 'staging', limit: 2, used: 2 })
    expectExceeded(await create(two), { environment: 'staging', key_id: null, limit: 2, used: 2 })
    expect((await create(elsewhere)).status).toBe(201)
    expect((await call(admin, 'GET', '/v1/quotas')).body).toMatchObject([
      { name: 'inboxes', environment: null, key_id: null, limit: 4, used: 3 },
      ...NAMES.slice(1).map((name) => ({ name, environment: null })),
      { name: 'inboxes', environment: null, key_id: key.id, limit: 1, used: 1 },
      { name: 'inboxes', environment: 'staging', key_id: null, limit: 2, used: 2 },
    ])

    // Mail counts for the key that created the inbox.
    expect((await ofKey({ limit: 0 }, 'stored-bytes')).status).toBe(200)
    await until('mail to be refused', () =>
      send(mayfly, inbox.address, mail('refused')).then(
        () => false,
        (error: unknown) => String(error).includes('452 4.2.2'),
      ),
    )

    expect((await ofKey({ limit: null })).body).toMatchObject({ key_id: key.id, limit: 4, used: 1 })
    expectExceeded(await create(one), { environment: 'staging' })
    expect((await ofStaging({ limit: null })).status).toBe(200)
    expect((await create(one)).status).toBe(201)
    expectExceeded(await create(one), { environment: null, key_id: null, limit: 4, used: 4 })

    const strangersKey = withKey(mayfly, (await openAccount(mayfly.operator)).key)
    for (const [target, scope, status] of [
      [admin, { key_id: 'key_unknown' }, 404],
      [strangersKey, { key_id: key.id }, 404],
      [admin, { key_id: key.id, environment: 'staging' }, 400],
      [admin, { key_id: 7 }, 400],
      [admin, { environment: 'Not valid' }, 400],
    ] as const) {
      const answer = await call(target, 'PUT', '/v1/quotas/inboxes', { body: { limit: 1, ...scope } })
      expect([scope, answer.status]).toEqual([scope, status])
    }
  })

  it('is refused after a hundred others', async () => {
    const { admin } = await ownedAccount({})
    const setOf = (environment: string) =>
      call(admin, 'PUT', '/v1/quotas/inboxes', { body: { limit: 1, environment } })
    for (let index = 0; index < 100; index += 1) expect((await setOf(`e${index}`)).status).toBe(200)
    const refused = { status: 400, code: 'invalid-request', detail: /may set 100 quotas/ } as const
    expectProblem(await setOf('one-more'), refused)
    expect((await setOf('e7')).status).toBe(200)
    expect((await call<unknown[]>(admin, 'GET', '/v1/quotas')).body).toHaveLength(100 + NAMES.length)
  })

  it('is refused above that of the plan, for unknown names, other bodies and other keys', async () => {
    const { admin, own } = await ownedAccount({ max_inboxes: 3 })
    expectProblem(await set(admin, 'inboxes', 4), {
      ...{
        status: 400,
        code: 'invalid-request',
        detail: /limit may be at most 3/,
        at: [{ pointer: '/limit' }],
      },
    })
    for (const limit of [-1, 1.5, '2', true, [], {}, undefined, 1e300]) {
      const answer = await set(admin, 'inboxes', limit)
      expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ pointer: '/limit' }] })
    }
    for (const name of ['inbox', '__proto__', 'INBOXES']) {
      expectProblem(await set(admin, name, 1), { status: 404, code: 'not-found' })
    }
    expectProblem(await set(own, 'inboxes', 1), { status: 403, code: 'missing-scope' })
    expect((await call(own, 'GET', '/v1/quotas')).body).toMatchObject([
      { limit: 3 },
      ...NAMES.slice(1).map(() => ({})),
    ])
  })
})
