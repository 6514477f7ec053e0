import { createHash } from 'node:crypto'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { converse } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

interface FaultJson {
  stage: string
  action: string
  code?: number
  seed?: number
}

interface DuplicateJson extends MessageJson {
  duplicate_of?: string
}

interface EntryJson {
  id: string
  type: string
  message_id: string | null
  size: number | null
  digest: string | null
}

const GREYLISTING = { stage: 'rcpt', action: 'reject', code: 451, enhanced_code: '4.7.1', text: 'greylisted' }

describe('faults on purpose', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  const pathOf = ({ id }: InboxJson) => `/v1/inboxes/${id}/faults`
  const setFaults = (inbox: InboxJson, ...faults: object[]) =>
    call<FaultJson[]>(mayfly, 'PUT', pathOf(inbox), { body: faults })

  async function inboxWithFaults(...faults: object[]): Promise<InboxJson> {
    const inbox = await createInbox(mayfly)
    expect((await setFaults(inbox, ...faults)).status).toBe(200)
    return inbox
  }

  /** The reply to RCPT TO. */
  async function offer({ address }: InboxJson, sender = 'app@example.com'): Promise<string> {
    const replies = await converse(mayfly.smtpPort, [
      'EHLO tests',
      `MAIL FROM:<${sender}>`,
      `RCPT TO:<${address}>`,
    ])
    return replies[3] ?? ''
  }

  /** The replies to the content of a mail, sent several times in one session. */
  async function send(inboxes: InboxJson[], subject: string, times = 1): Promise<string[]> {
    const lines = [
      'MAIL FROM:<app@example.com>',
      ...inboxes.map(({ address }) => `RCPT TO:<${address}>`),
      'DATA',
      `${mail(subject).trimEnd()}\r\n.`,
    ]
    const all = ['EHLO tests', ...Array.from({ length: times }, () => lines).flat()]
    const replies = await converse(mayfly.smtpPort, all)
    return Array.from({ length: times }, (_, n) => replies[1 + (n + 1) * lines.length] ?? '')
  }

  const historyOf = async ({ id }: InboxJson): Promise<EntryJson[]> =>
    (await call<EntryJson[]>(mayfly, 'GET', `/v1/inboxes/${id}/history?limit=100`)).body
  const accepted = expect.stringMatching(/^250 2\.0\.0 msg_/) as string

  it('are set, read, replaced and removed, and stand in the history', async () => {
    const inbox = await createInbox(mayfly)
    expect((await call(mayfly, 'GET', pathOf(inbox))).body).toEqual([])
    const faults = [GREYLISTING, { stage: 'data', action: 'delay', delay_ms: 10, every_n: 2 }]
    const set = await setFaults(inbox, ...faults)
    expect(set).toMatchObject({ status: 200, body: faults })
    expect((await call(mayfly, 'GET', pathOf(inbox))).body).toEqual(faults)
    const alias = await call(mayfly, 'PUT', pathOf(inbox).replace('inboxes', 'emails'), { body: faults })
    expect(alias.body).toEqual(faults)
    const drawn = await setFaults(inbox, { stage: 'after_accept', action: 'drop', probability: 0.5 })
    expect(drawn.body).toEqual([
      { stage: 'after_accept', action: 'drop', probability: 0.5, seed: expect.any(Number) as number },
    ])
    expect((await setFaults(inbox, ...drawn.body)).body).toEqual(drawn.body)
    expect(await call(mayfly, 'DELETE', pathOf(inbox))).toMatchObject({ status: 200, body: [] })
    expect((await call(mayfly, 'GET', pathOf(inbox))).body).toEqual([])
    const types = (await historyOf(inbox)).map(({ type }) => type)
    // Setting the same faults again changes nothing.
    expect(types).toEqual(['inbox.created', 'faults.set', 'faults.set', 'faults.set'])
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    expectProblem(await setFaults(inbox, GREYLISTING), { status: 410, code: 'inbox-deleted' })
  })

  it.each([
    { fault: { action: 'reject' }, at: '/0/stage' },
    { fault: { stage: 'helo', action: 'reject' }, at: '/0/stage' },
    { fault: { stage: 'rcpt', action: 'drop' }, at: '/0/action' },
    { fault: { stage: 'after_accept', action: 'reject' }, at: '/0/action' },
    { fault: { ...GREYLISTING, code: 399 }, at: '/0/code' },
    { fault: { ...GREYLISTING, code: 600 }, at: '/0/code' },
    { fault: { ...GREYLISTING, code: 550 }, at: '/0/enhanced_code' },
    { fault: { ...GREYLISTING, enhanced_code: '2.0.0' }, at: '/0/enhanced_code' },
    { fault: { ...GREYLISTING, text: 'two\r\nlines' }, at: '/0/text' },
    { fault: { ...GREYLISTING, delay_ms: 5 }, at: '/0/delay_ms' },
    { fault: { stage: 'rcpt', action: 'delay' }, at: '/0/delay_ms' },
    { fault: { stage: 'rcpt', action: 'delay', delay_ms: 60_001 }, at: '/0/delay_ms' },
    { fault: { stage: 'after_accept', action: 'drop', code: 451 }, at: '/0/code' },
    { fault: { stage: 'after_accept', action: 'drop', probability: 1.1 }, at: '/0/probability' },
    { fault: { stage: 'after_accept', action: 'drop', seed: 1 }, at: '/0/seed' },
    { fault: { stage: 'after_accept', action: 'drop', every_n: 0 }, at: '/0/every_n' },
    { fault: { stage: 'after_accept', action: 'drop', nope: 0 }, at: '/0/nope' },
  ])('refuse $fault', async ({ fault, at }) => {
    const inbox = await createInbox(mayfly)
    const problem = { status: 400, code: 'invalid-request' }
    expectProblem(await setFaults(inbox, fault), { ...problem, at: [{ pointer: at }] })
  })

  it('are a list of at most 16', async () => {
    const inbox = await createInbox(mayfly)
    for (const body of [GREYLISTING, [[]], Array.from({ length: 17 }, () => GREYLISTING)]) {
      const answer = await call(mayfly, 'PUT', pathOf(inbox), { body })
      expectProblem(answer, { status: 400, code: 'invalid-request' })
    }
    const many = await setFaults(inbox, ...Array.from({ length: 16 }, () => GREYLISTING))
    expect(many.body).toHaveLength(16)
  })

  it('reject the first attempts of each sender, as greylisting does', async () => {
    const inbox = await inboxWithFaults({ ...GREYLISTING, first_n: 2 })
    const refused = '451 4.7.1 greylisted'
    for (const expected of [refused, refused, '250 2.1.5 Accepted', '250 2.1.5 Accepted']) {
      expect(await offer(inbox)).toBe(expected)
    }
    expect(await offer(inbox, 'other@example.com')).toBe(refused)
    await call(mayfly, 'DELETE', pathOf(inbox))
    expect(await offer(inbox, 'other@example.com')).toBe('250 2.1.5 Accepted')
    await setFaults(inbox, { ...GREYLISTING, first_n: 2 })
    expect(await offer(inbox)).toBe(refused)
  })

  it('do not end a session, however many mails they reject', async () => {
    const { address } = await inboxWithFaults({ stage: 'rcpt', action: 'reject' })
    const offers = Array.from({ length: 600 }, () => [
      ...['MAIL FROM:<>', `RCPT TO:<${address}>`, 'DATA', 'RSET'],
    ])
    const replies = await converse(mayfly.smtpPort, ['EHLO tests', ...offers.flat()])
    expect(replies.filter((reply) => reply.startsWith('421'))).toEqual([])
    expect(replies.filter((reply) => reply.startsWith('451'))).toHaveLength(offers.length)
  })

  it('reject with the default code and text, or with those of a full mailbox', async () => {
    const [plain, full] = [
      await inboxWithFaults({ stage: 'rcpt', action: 'reject' }),
      await inboxWithFaults({ stage: 'rcpt', action: 'reject', code: 452, enhanced_code: '4.2.2' }),
    ]
    expect(await offer(plain)).toBe('451 4.0.0 a fault on purpose')
    expect(await offer(full)).toBe('452 4.2.2 a fault on purpose')
  })

  it('reject the content of a mail for all of its recipients', async () => {
    const inbox = await inboxWithFaults({ stage: 'data', action: 'reject', code: 554, every_n: 2 })
    const other = await createInbox(mayfly)
    const replies = await send([other, inbox], 'mail', 4)
    const refused = '554 5.0.0 a fault on purpose'
    expect(replies).toEqual([accepted, refused, accepted, refused])
    expect(await messagesOf(mayfly, other.id, 2)).toHaveLength(2)
  })

  it('delay a reply', async () => {
    const inbox = await inboxWithFaults(
      { stage: 'rcpt', action: 'delay', delay_ms: 300 },
      { stage: 'data', action: 'delay', delay_ms: 300 },
    )
    const started = performance.now()
    expect(await send([inbox], 'slow')).toEqual([accepted])
    expect(performance.now() - started).toBeGreaterThan(590)
    await messagesOf(mayfly, inbox.id, 1)
  })

  it('drop mail that was accepted: its size and digest are on the log', async () => {
    const inbox = await inboxWithFaults({ stage: 'after_accept', action: 'drop', every_n: 2 })
    const replies = await send([inbox], 'mail', 4)
    expect(replies).toEqual([accepted, accepted, accepted, accepted])
    const ids = replies.map((reply) => reply.split(' ')[2])
    const messages = await messagesOf(mayfly, inbox.id, 2)
    expect(messages.map(({ id }) => id)).toEqual([ids[0], ids[2]])
    const droppedOf = async () => (await historyOf(inbox)).filter(({ type }) => type === 'message.dropped')
    await until('both to be in the history', async () => (await droppedOf()).length === 2)
    const dropped = await droppedOf()
    const source = `${mail('mail').trimEnd()}\r\n`
    const digest = createHash('sha256').update(source).digest('hex')
    expect(dropped).toMatchObject(
      [ids[1], ids[3]].map((id) => ({ message_id: id, size: source.length, digest })),
    )
    const read = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages/${ids[1]}`)
    expectProblem(read, { status: 410, code: 'message-deleted' })
  })

  it('duplicate mail, and say which message is repeated', async () => {
    const inbox = await inboxWithFaults({ stage: 'after_accept', action: 'duplicate', every_n: 2 })
    const replies = await send([inbox], 'mail', 2)
    const messages = await messagesOf(mayfly, inbox.id, 3)
    expect(replies.map((reply) => reply.split(' ').length)).toEqual([3, 3])
    const [one, two, three] = messages as DuplicateJson[]
    expect(three).toMatchObject({ duplicate_of: two?.id, sha256: two?.sha256 })
    expect(three?.id).not.toBe(two?.id)
    for (const message of [one, two]) expect(message).not.toHaveProperty('duplicate_of')
  })

  it('keep the ledger: accepted = visible − duplicates + dropped, and the same seed chooses the same mails', async () => {
    const faults = [
      { stage: 'after_accept', action: 'drop', probability: 0.3, seed: 7 },
      { stage: 'after_accept', action: 'duplicate', probability: 0.3, seed: 8 },
    ]
    const runs = [await inboxWithFaults(...faults), await inboxWithFaults(...faults)]
    const outcomes = []
    for (const inbox of runs) {
      for (let n = 0; n < 40; n += 1) expect(await send([inbox], `mail ${n}`)).toEqual([accepted])
      const listed = `/v1/inboxes/${inbox.id}/messages?limit=100`
      let [messages, dropped]: [DuplicateJson[], number] = [[], 0]
      const duplicates = () => messages.filter(({ duplicate_of: of }) => of !== undefined)
      await until('the ledger to hold', async () => {
        messages = (await call<DuplicateJson[]>(mayfly, 'GET', listed)).body
        dropped = (await historyOf(inbox)).filter(({ type }) => type === 'message.dropped').length
        return messages.length - duplicates().length + dropped === 40
      })
      expect(dropped).toBeGreaterThan(0)
      expect(duplicates().length).toBeGreaterThan(0)
      outcomes.push(messages.map(({ subject, duplicate_of: of }) => `${subject} ${of === undefined}`))
    }
    expect(outcomes[0]).toEqual(outcomes[1])
  })

  describe('of an environment', () => {
    let admin: Target
    let own: Target

    beforeAll(async () => {
      admin = withKey(mayfly, (await openAccount(mayfly.operator, { plan: 'enterprise' })).key)
      own = withKey(mayfly, await issueKey(admin, { environment: 'staging' }))
    })

    const set = (name: string, target: Target, ...faults: object[]) =>
      call(target, 'PUT', `/v1/environments/${name}/faults`, { body: faults })

    it('are those of its new inboxes', async () => {
      const before = await createInbox(own)
      const drop = { stage: 'after_accept', action: 'drop', probability: 0.01, seed: 5 }
      expect(await set('staging', admin, GREYLISTING, drop)).toMatchObject({
        status: 200,
        body: [GREYLISTING, drop],
      })
      expect((await call(admin, 'GET', '/v1/environments/staging/faults')).body).toEqual([GREYLISTING, drop])
      const faultsOf = async (inbox: InboxJson) => (await call<FaultJson[]>(own, 'GET', pathOf(inbox))).body
      const made = async () => faultsOf(await createInbox(own))
      await until('new inboxes to have them', async () => (await made()).length === 2)
      for (const wanted of ['', '&label=run:1&count=1']) {
        const waiting = await call(own, 'GET', `/v1/messages/wait?timeout=0${wanted}`)
        expect(expectProblem(waiting, { status: 404, code: 'no-matching-message' }).detail).toMatch(
          /New inboxes of the environment have faults on purpose \(reject at rcpt, drop at after_accept\)/,
        )
      }
      const [one, two] = [await made(), await made()]
      expect(one).toEqual([GREYLISTING, { ...drop, seed: expect.any(Number) as number }])
      // Each inbox draws its own numbers.
      expect(one[1]?.seed).not.toBe(two[1]?.seed)
      expect(await faultsOf(before)).toEqual([])
      expect((await call(admin, 'DELETE', '/v1/environments/staging/faults')).body).toEqual([])
      await until('new inboxes to have none', async () => (await made()).length === 0)
    })

    it('need the scope admin, and an environment with a key', async () => {
      expectProblem(await set('staging', own), { status: 403, code: 'missing-scope' })
      expectProblem(await set('nowhere', admin), { status: 404, code: 'not-found' })
    })
  })
})
