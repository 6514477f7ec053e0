import { accountOn, issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  mail,
  messagesOf,
  only,
  send,
  type DomainJson,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { startDns, type DnsServer } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

const TAKEN = { status: 409, code: 'address-taken' }
const NOT_VERIFIED = { status: 422, code: 'domain-not-verified' }

const post = (target: Target, body: object, headers: Record<string, string> = {}) =>
  call<InboxJson & { password?: string }>(target, 'POST', '/v1/inboxes', { body, headers })

async function inboxesAt(target: Target, address: string | null, label = ''): Promise<InboxJson[]> {
  const query = new URLSearchParams({ limit: '1000' })
  if (address !== null) query.set('address', address)
  if (label !== '') query.set('label', label)
  return (await call<InboxJson[]>(target, 'GET', `/v1/inboxes?${query.toString()}`)).body
}

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

  it.each(['sup..port@caught.example', '+support@caught.example', `${'a'.repeat(65)}@caught.example`])(
    'creates again the inbox that mail to %s had made',
    async (address) => {
      await send(mayfly, address, mail('caught'))
      const [made] = await until('the inbox', async () => {
        const found = await inboxesAt(mayfly, address)
        return found.length > 0 ? found : null
      })
      await call(mayfly, 'DELETE', `/v1/inboxes/${made?.id}`)
      expect(await answerToRcpt(mayfly, address)).toMatch(/^550 /)
      const inbox = await createInbox(mayfly, { address })
      expect(inbox).toMatchObject({ address })
      await send(mayfly, address, mail('created again'))
      expect(await messagesOf(mayfly, inbox.id, 1)).toMatchObject([{ subject: 'created again' }])
    },
  )

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
    const { id, name } = only(await inboxesAt(mayfly, address))
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

describe('a hosted domain', () => {
  let mayfly: Mayfly
  let account: Target

  beforeAll(async () => {
    mayfly = await startMayfly({ env: { MAYFLY_AUTO_INBOXES_PER_MINUTE: '60' } })
    const operator = withKey(mayfly, (await openAccount(mayfly)).key)
    const rights = { environment: 'production', scopes: ['admin', 'inboxes', 'read'] }
    account = withKey(mayfly, await issueKey(operator, rights))
  })
  afterAll(() => mayfly.dispose())

  const host = (body: object = {}) =>
    create<DomainJson>(account, '/v1/domains', { hosted: true, environment: 'production', ...body })

  it('makes an inbox for any address, with its duration and labels, in its account and environment', async () => {
    const catchAll = { action: 'create', duration: '2h', labels: { team: 'qa' } }
    const { name } = await host({ catch_all: catchAll })
    await send(mayfly, `Anything+one@${name.toUpperCase()}`, mail('first'))
    await send(mayfly, `anything@${name}`, mail('second'))
    const inbox = only(await inboxesAt(account, `anything@${name}`))
    expect(inbox).toMatchObject({
      ...{ environment: 'production', duration: '2h', labels: { team: 'qa', domain: name } },
    })
    expect(await messagesOf(account, inbox.id, 2)).toHaveLength(2)
    expect(await inboxesAt(mayfly, `anything@${name}`)).toEqual([])
  })

  it('makes one inbox for each address, however many mails arrive at once', async () => {
    const { name } = await host()
    const addresses = Array.from({ length: 5 }, (_, number) => `user-${number}@${name}`)
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => send(mayfly, addresses, mail(`mail ${index}`))),
    )
    const inboxes = await inboxesAt(account, null, `domain:${name}`)
    expect(inboxes.map(({ address }) => address).sort()).toEqual(addresses)
    for (const { id } of inboxes) expect(await messagesOf(account, id, 20)).toHaveLength(20)
  })

  it('delivers to the inbox of its catch-all, but known addresses to their own', async () => {
    const target = await createInbox(account)
    const { name } = await host({ catch_all: { action: 'deliver', inbox_id: target.id } })
    const own = await createInbox(account, { address: `own@${name}` })
    await send(mayfly, [`own+a@${name}`, `any@${name}`, `other+b@${name}`], mail('delivered'))
    const received = await messagesOf(account, target.id, 2)
    expect(received.map(({ envelope }) => envelope.rcpt_to).sort()).toEqual([
      `any@${name}`,
      `other+b@${name}`,
    ])
    expect(await messagesOf(account, own.id, 1)).toHaveLength(1)
    expect(await inboxesAt(account, `any@${name}`)).toEqual([])
    await call(account, 'DELETE', `/v1/inboxes/${target.id}`)
    expect(await answerToRcpt(mayfly, `any@${name}`)).toMatch(/^550 5\.1\.1 this inbox was deleted/)
  })

  it('refuses unknown addresses if its catch-all is to reject them, and detail finds known ones', async () => {
    const { name } = await host({ catch_all: { action: 'reject' } })
    expect(await answerToRcpt(mayfly, `support@${name}`)).toMatch(/^550 5\.1\.1 no inbox/)
    const inbox = await createInbox(account, { local_part: 'support', domain: name })
    await send(mayfly, `support+A-1@${name}`, mail('one'))
    await send(mayfly, `support+A-2@${name}`, mail('two'))
    await messagesOf(account, inbox.id, 2)
    const path = `/v1/inboxes/${inbox.id}/messages/wait?detail=a-2&timeout=0`
    expect(await call(account, 'GET', path)).toMatchObject({ status: 200, body: { subject: 'two' } })
    const all = await call<MessageJson[]>(account, 'GET', '/v1/messages?detail=a-1')
    expect(all.body.map(({ subject }) => subject)).toEqual(['one'])
  })

  it('gives addresses only to its account and environment', async () => {
    const { name } = await host()
    const body = { address: `support@${name}` }
    const staging = withKey(mayfly, await issueKey(account, { environment: 'staging', scopes: ['inboxes'] }))
    for (const target of [mayfly, staging]) expectProblem(await post(target, body), NOT_VERIFIED)
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(account, body)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 201) expectProblem(answer, TAKEN)
  })

  it('refuses mail once it was deleted', async () => {
    const { id, name } = await host()
    const { address } = await createInbox(account, { address: `support@${name}` })
    await send(mayfly, address, mail('before'))
    await call(account, 'DELETE', `/v1/domains/${id}`)
    const refused = () => answerToRcpt(mayfly, address)
    await until('the domain to be forgotten', async () => /^550 5\.1\.1 no inbox/.test(await refused()))
    expectProblem(await post(account, { address: `other@${name}` }), {
      ...{ status: 400, code: 'invalid-request' },
    })
  })

  it('makes no more inboxes for a mail to 1,000 unknown addresses than the limit', async () => {
    const { name } = await host()
    const recipients = Array.from({ length: 1_000 }, (_, number) => `flood-${number}@${name}`)
    await expect(send(mayfly, recipients, mail('flood'))).rejects.toThrow(/452 4\.7\.0 too many new inboxes/)
    expect((await inboxesAt(account, null, `domain:${name}`)).length).toBeLessThanOrEqual(60)
  })
})

describe('a domain of an account', () => {
  const DAY_MS = 86_400_000
  const MX = ['10 mx.mayfly.example']
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let dns: DnsServer
  let mayfly: MayflyWithClock

  beforeAll(async () => {
    folder = await makeFolder()
    dns = await startDns({})
    mayfly = await startWithClock(folder.path, Date.now(), {
      MAYFLY_COUNT_USAGE: 'false',
      MAYFLY_DNS_SERVERS: dns.address,
      MAYFLY_MX_HOST: 'mx.mayfly.example',
    })
    await mayfly.runAhead(0)
  })
  afterAll(async () => {
    await mayfly.close()
    await folder.remove()
    dns.dispose()
  })

  const register = (target: Target, body: object) =>
    create<DomainJson>(target, '/v1/domains', { environment: 'development', subdomains: true, ...body })

  /** What proves the domain. */
  const zoneOf = ({ name, records }: DomainJson) => ({
    [`_mayfly-challenge.${name}`]: { TXT: [records[0]?.value ?? ''] },
    [name]: { MX },
    [`*.${name}`]: { MX },
  })

  const verify = (target: Target, { id, name }: DomainJson, state: string) =>
    until(`a check that finds ${name} ${state}`, async () => {
      const { body } = await call<DomainJson>(target, 'POST', `/v1/domains/${id}/verify`)
      return body.state === state
    })

  const untilAnswered = (address: string, pattern: RegExp) =>
    until(`${pattern.source} to RCPT TO`, async () => pattern.test(await answerToRcpt(mayfly, address)))

  it('answers 451 for 72 hours after it lapsed, then 550, and has its inboxes again when its records are back', async () => {
    const domain = await register(mayfly, { name: 'lapses.example' })
    dns.zone = zoneOf(domain)
    await verify(mayfly, domain, 'verified')
    const address = 'support@sub.lapses.example'
    const inbox = await createInbox(mayfly, { address, duration: '30d' })
    await untilAnswered(address, /^250 /)

    dns.zone = {}
    for (const days of [0, 1, 2]) {
      await mayfly.runAhead(days * DAY_MS + 1_000)
      await verify(mayfly, domain, days < 2 ? 'verified' : 'lapsed')
    }
    await untilAnswered(address, /^451 4\.1\.2 /)
    expectProblem(await post(mayfly, { address: 'other@lapses.example' }), NOT_VERIFIED)
    await mayfly.runAhead(5.5 * DAY_MS)
    await untilAnswered(address, /^550 5\.1\.2 /)

    dns.zone = zoneOf(domain)
    await verify(mayfly, domain, 'verified')
    await untilAnswered(address, /^250 /)
    await send(mayfly, address, mail('back'))
    expect(await messagesOf(mayfly, inbox.id, 1)).toHaveLength(1)
  }, 60_000)

  it('has none of the inboxes of an account that had it before', async () => {
    const addresses = ['support@moves.example', 'other@moves.example']
    const domain = await register(mayfly, { name: 'moves.example' })
    dns.zone = zoneOf(domain)
    await verify(mayfly, domain, 'verified')
    const former = await Promise.all(addresses.map((address) => createInbox(mayfly, { address })))

    const operator = withKey(mayfly, (await openAccount(mayfly)).key)
    const rights = { environment: 'development', scopes: ['admin', 'inboxes', 'read'] }
    const account = withKey(mayfly, await issueKey(operator, rights))
    const moved = await register(account, { name: 'moves.example', catch_all: { action: 'create' } })
    dns.zone = zoneOf(moved)
    await verify(account, moved, 'verified')
    expectProblem(await post(mayfly, { address: 'new@moves.example' }), NOT_VERIFIED)
    const chosen = await createInbox(account, { address: addresses[1] })
    await until('mail to arrive in the new account', async () => {
      await send(mayfly, addresses, mail('moved'))
      return (await inboxesAt(account, addresses[0] ?? null)).length > 0
    })
    expect((await messagesOf(account, chosen.id, 1)).length).toBeGreaterThan(0)
    for (const { id } of former) {
      const { body } = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${id}`)
      expect(body.state).toBe('active')
    }
  }, 60_000)
})
