import { accountOn } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  only,
  send,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'

const TAKEN = { status: 409, code: 'address-taken' }
const NOT_VERIFIED = { status: 422, code: 'domain-not-verified' }

const post = (target: Target, body: object, headers: Record<string, string> = {}) =>
  call<InboxJson & { password?: string }>(target, 'POST', '/v1/inboxes', { body, headers })

describe('POST /v1/inboxes with an address', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it('creates the inbox that mail to the address arrives in', async () => {
    const labels = { run: '42' }
    const inbox = await createInbox(mayfly, { address: 'Support@Company.example', name: 'one', labels })
    expect(inbox).toMatchObject({ address: 'support@company.example', name: 'one', labels })
    await send(mayfly, ['SUPPORT@company.example', 'support+Billing@company.example'], mail('one'))
    const messages: (MessageJson & { recipient_detail?: string | null })[] = await messagesOf(
      mayfly,
      inbox.id,
      2,
    )
    expect(messages.map(({ recipient_detail: detail }) => detail).sort()).toEqual(['Billing', null])
    const query = `/v1/inboxes/${inbox.id}/messages?detail=billing`
    expect((await call<MessageJson[]>(mayfly, 'GET', query)).body).toHaveLength(1)
  })

  it.each([
    { body: { local_part: 'first.last', domain: 'Parts.example' }, address: 'first.last@parts.example' },
    { body: { address: 'jürgen@münchen.example' }, address: 'jürgen@xn--mnchen-3ya.example' },
    { body: { address: 'J\u030c@caron.example' }, address: '\u01f0@caron.example' },
    { body: { address: `${'a'.repeat(64)}@long.example` }, address: `${'a'.repeat(64)}@long.example` },
    { body: { address: "o'brien/=?^_`{|}~-@odd.example" }, address: "o'brien/=?^_`{|}~-@odd.example" },
  ])('accepts $body', async ({ body, address }) => {
    const inbox = await createInbox(mayfly, body)
    expect(inbox.address).toBe(address)
    await send(mayfly, body.address ?? address, mail('chosen'))
    expect(await messagesOf(mayfly, inbox.id, 1)).toHaveLength(1)
  })

  it.each([
    'support',
    '@company.example',
    'support@',
    '"a b"@company.example',
    '"support"@company.example',
    'a b@company.example',
    'support+billing@company.example',
    '+support@company.example',
    '.support@company.example',
    'support.@company.example',
    'sup..port@company.example',
    'a@b@company.example',
    'sup\u0000port@company.example',
    'sup\u200bport@company.example',
    'sup\ud800port@company.example',
    `${'a'.repeat(65)}@company.example`,
    `${'ü'.repeat(33)}@company.example`,
    'support@[192.0.2.1]',
    'support@company..example',
    'support@company.example.',
    'support@-company.example',
    `support@${'a'.repeat(64)}.example`,
    `support@${'a23456789.'.repeat(25)}example`,
    '',
  ])('refuses %j', async (address) => {
    expectProblem(await post(mayfly, { address }), {
      ...{ status: 400, code: 'invalid-request', at: [{ pointer: '/address' }], detail: /local part/ },
    })
  })

  it.each([
    { body: { address: null }, at: '/address' },
    { body: { address: ['a@b.example'] }, at: '/address' },
    { body: { address: 'a@b.example', local_part: 'a' }, at: '' },
    { body: { address: 'a@b.example', local_part: 'a', domain: 'b.example' }, at: '' },
    { body: { local_part: 'a' }, at: '' },
    { body: { domain: 'b.example' }, at: '' },
    { body: { local_part: 'a@b', domain: 'c.example' }, at: '/local_part' },
    { body: { local_part: 'a', domain: 'b@c.example' }, at: '/local_part' },
    { body: { local_part: 1, domain: 'b.example' }, at: '/local_part' },
  ])('refuses $body', async ({ body, at }) => {
    expectProblem(await post(mayfly, body), { status: 400, code: 'invalid-request', at: [{ pointer: at }] })
  })

  it.each(['someone@mayfly.test', '0123456789abcdefghjk@MAYFLY.test', 'a@sub.mayfly.test'])(
    'refuses %s, since those are generated',
    async (address) => {
      const refusal = { status: 400, code: 'invalid-request', detail: /generated: leave out the address/ }
      expectProblem(await post(mayfly, { address }), refusal)
    },
  )

  it('refuses a domain of nobody to another account', async () => {
    const other = await accountOn(mayfly)
    expectProblem(await post(other, { address: 'support@other.example' }), NOT_VERIFIED)
  })

  it('refuses an address that has an active inbox, also one that mail has made', async () => {
    await createInbox(mayfly, { address: 'taken@company.example' })
    expectProblem(await post(mayfly, { address: 'Taken@company.example' }), TAKEN)
    await send(mayfly, 'caught@company.example', mail('caught'))
    expectProblem(await post(mayfly, { address: 'caught@company.example' }), TAKEN)
  })

  it('makes one inbox, if requests and mails arrive at once', async () => {
    const address = 'race@company.example'
    const posts = Array.from({ length: 10 }, (_, index) => post(mayfly, { address, name: `${index}` }))
    const mails = Array.from({ length: 10 }, (_, index) => send(mayfly, address, mail(`${index}`)))
    const answers = await Promise.all(posts)
    await Promise.all(mails)
    const created = answers.filter(({ status }) => status === 201)
    expect(created.length).toBeLessThanOrEqual(1)
    for (const answer of answers) if (answer.status !== 201) expectProblem(answer, TAKEN)
    const query = `/v1/inboxes?address=${address}`
    const { id, name } = only((await call<InboxJson[]>(mayfly, 'GET', query)).body)
    expect(await messagesOf(mayfly, id, 10)).toHaveLength(10)
    for (const { body } of created) expect({ id, name }).toEqual({ id: body.id, name: body.name })
  })

  it('lets exactly one of many requests have the address', async () => {
    const address = 'one@company.example'
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(mayfly, { address })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 201) expectProblem(answer, TAKEN)
  })

  it('answers a repeat with the same inbox and password', async () => {
    const body = { address: 'repeated@company.example', password_protected: true }
    const first = await post(mayfly, body, { 'idempotency-key': 'repeated-address' })
    const repeat = await post(mayfly, body, { 'idempotency-key': 'repeated-address' })
    expect(first).toMatchObject({ status: 201, body: { password: expect.any(String) as string } })
    expect(repeat).toMatchObject({ status: 201, body: first.body })
    expectProblem(await post(mayfly, body, { 'idempotency-key': 'another' }), TAKEN)
  })

  it('can use the address of a deleted inbox again, which refuses mail until then', async () => {
    const address = 'again@company.example'
    const old = await createInbox(mayfly, { address })
    await send(mayfly, address, mail('old'))
    await call(mayfly, 'DELETE', `/v1/inboxes/${old.id}`)
    await expect(send(mayfly, address, mail('between'))).rejects.toThrow(/550 5\.1\.1 this inbox was deleted/)
    const current = await createInbox(mayfly, { address })
    expect(current.id).not.toBe(old.id)
    await send(mayfly, address, mail('new'))
    expect((await messagesOf(mayfly, current.id, 1)).map(({ subject }) => subject)).toEqual(['new'])
  })
})

describe('the address of an expired inbox', () => {
  it('can be used again', async () => {
    const folder = await makeFolder()
    const mayfly = await startWithClock(folder.path, Date.now(), { MAYFLY_COUNT_USAGE: 'false' })
    try {
      await mayfly.runAhead(0)
      const address = 'expires@other.example'
      const old = await createInbox(mayfly, { address, duration: '1h' })
      await mayfly.runAhead(2 * 3_600_000)
      const current = await createInbox(mayfly, { address })
      expect(current.id > old.id).toBe(true)
      await send(mayfly, address, mail('new'))
      expect(await messagesOf(mayfly, current.id, 1)).toHaveLength(1)
    } finally {
      await mayfly.close()
      await folder.remove()
    }
  })
})

describe('MAYFLY_ACCEPT_DOMAINS', () => {
  it('lets the first account choose addresses in these domains, and in no other', async () => {
    const mayfly = await startMayfly({ env: { MAYFLY_ACCEPT_DOMAINS: 'staging.acme.example' } })
    try {
      const body = { address: 'support@staging.acme.example' }
      expectProblem(await post(await accountOn(mayfly), body), NOT_VERIFIED)
      await createInbox(mayfly, body)
      expectProblem(await post(mayfly, { address: 'support@acme.example' }), NOT_VERIFIED)
    } finally {
      await mayfly.dispose()
    }
  })
})
