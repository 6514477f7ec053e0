import { randomUUID } from 'node:crypto'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
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
import { converse } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

let mayfly: SharedMayfly

beforeAll(async () => {
  mayfly = await sharedMayfly()
})

async function accountWith(limits: object): Promise<Target> {
  const { key } = await openAccount(mayfly.operator, { plan: 'enterprise', limits })
  return withKey(mayfly, await issueKey(withKey(mayfly, key)))
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
