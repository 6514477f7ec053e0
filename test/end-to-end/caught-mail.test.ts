import {
  call,
  create,
  createInbox,
  mail,
  messagesOf,
  only,
  pagesFrom,
  send,
  type DomainJson,
  type InboxJson,
  type MessageJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock } from '#test/harness/mayfly-with-clock.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

async function inboxesOf(target: Target, query = ''): Promise<InboxJson[]> {
  const pages = await pagesFrom<InboxJson>(target, `/v1/inboxes?limit=1000${query}`)
  return pages.flatMap(({ body }) => body)
}

const inboxesAt = (target: Target, address: string, query = '') =>
  inboxesOf(target, `&address=${encodeURIComponent(address)}${query}`)

describe('mail to an unknown address', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ env: { MAYFLY_AUTO_INBOXES_PER_MINUTE: '40' } })
  })
  afterAll(() => mayfly.dispose())

  it('in any other domain makes an inbox, which later mail is delivered to', async () => {
    const answer = await send(mayfly, 'Support@Company.com', mail('first'))
    const inbox = only(await inboxesAt(mayfly, 'support@company.com'))
    expect(inbox).toMatchObject({ environment: 'development', labels: { domain: 'company.com' }, name: null })
    expect(Date.parse(inbox.expires_at) - Date.parse(inbox.created_at)).toBe(86_400_000)
    const [first] = await messagesOf(mayfly, inbox.id, 1)
    expect(answer).toContain(first?.id ?? 'no message')
    await send(mayfly, ['support@company.com', 'SUPPORT+billing@company.com'], mail('second'))
    const messages = await messagesOf(mayfly, inbox.id, 3)
    expect(messages.map(({ envelope }) => envelope.rcpt_to).sort()).toEqual([
      'SUPPORT+billing@company.com',
      'Support@company.com',
      'support@company.com',
    ])
    expect(await inboxesAt(mayfly, 'no address')).toEqual([])
    expect(await inboxesAt(mayfly, 'SUPPORT+x@company.com')).toEqual([
      expect.objectContaining({ id: inbox.id }),
    ])
    // As typed into a shell, without an encoded `+`.
    expect(await inboxesOf(mayfly, '&address=support+x@company.com')).toHaveLength(1)
  })

  it('wakes a wait for its recipient, which began before there was an inbox', async () => {
    const path = '/v1/messages/wait?recipient=new@waited.example&timeout=20'
    const waiting = call<MessageJson>(mayfly, 'GET', path)
    await until('the wait', async () => {
      const metrics = await fetch(`${mayfly.url}/metrics`).then((answer) => answer.text())
      return /^mayfly_open_waits 1$/m.test(metrics)
    })
    await send(mayfly, 'New@Waited.example', mail('awaited'))
    expect(await waiting).toMatchObject({ status: 200, body: { subject: 'awaited' } })
  })

  it('makes one inbox for each address, however many mails arrive at once', async () => {
    const addresses = Array.from({ length: 5 }, (_, number) => `user-${number}@many.example`)
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => send(mayfly, addresses, mail(`mail ${index}`))),
    )
    const inboxes = await inboxesOf(mayfly, '&label=domain:many.example')
    expect(inboxes.map(({ address }) => address).sort()).toEqual(addresses)
    for (const { id } of inboxes) expect(await messagesOf(mayfly, id, 20)).toHaveLength(20)
  })

  it.each([
    { recipient: 'jürgen@münchen.example', address: 'jürgen@xn--mnchen-3ya.example' },
    { recipient: 'root@localhost', address: 'root@localhost' },
    { recipient: '..odd..@odd.example', address: '..odd..@odd.example' },
    { recipient: '+tag@odd.example', address: '+tag@odd.example' },
  ])('to $recipient makes an inbox for $address', async ({ recipient, address }) => {
    await send(mayfly, recipient, mail('odd'))
    const { id } = only(await inboxesAt(mayfly, address))
    expect(await messagesOf(mayfly, id, 1)).toHaveLength(1)
  })

  it.each(['0123456789abcdefghjk@mayfly.test', 'someone@mayfly.test', 'a@sub.mayfly.test', 'a@[192.0.2.1]'])(
    'to %s is refused',
    async (recipient) => {
      expect(await answerToRcpt(mayfly, recipient)).toMatch(/^550 5\.1\.1 /)
    },
  )

  it('is refused once the inbox was deleted', async () => {
    const address = 'deleted@other.example'
    await send(mayfly, address, mail('before'))
    const { id } = only(await inboxesAt(mayfly, address))
    expect((await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)).status).toBe(200)
    await expect(send(mayfly, address, mail('after'))).rejects.toThrow(/550 5\.1\.1 this inbox was deleted/)
    expect(await inboxesAt(mayfly, address)).toEqual([])
  })

  it('is answered 452 if one address makes too many inboxes, and known addresses still get mail', async () => {
    const { address } = await createInbox(mayfly)
    const recipients = Array.from({ length: 41 }, (_, number) => `flood-${number}@flood.example`)
    await expect(send(mayfly, recipients, mail('flood'))).rejects.toThrow(/452 4\.7\.0 too many new inboxes/)
    await send(mayfly, [address, 'support@company.com'], mail('known'))
  })

  it('makes one inbox, and every acknowledged mail is in it, if Mayfly is killed at any moment', async () => {
    const killed = await startMayfly()
    const { name } = await create<DomainJson>(killed, '/v1/domains', {
      ...{ hosted: true, environment: 'development' },
    })
    const numbered = Array.from({ length: 5 }, (_, number) => `killed-${number}`)
    const addresses = ['other.example', name].flatMap((domain) =>
      numbered.map((local) => `${local}@${domain}`),
    )
    const sent = addresses.flatMap((address) => Array.from({ length: 4 }, () => address))
    const acknowledged = new Map<string, string>()
    const sending = Promise.allSettled(
      sent.map(async (address) => {
        const answer = await send(killed, address, mail('before'))
        for (const [id] of answer.matchAll(/msg_\w+/g)) acknowledged.set(id, address)
      }),
    )
    const enough = Math.floor(Math.random() * sent.length)
    await until(`${enough} acknowledgements`, () => acknowledged.size >= enough)
    await killed.end('SIGKILL')
    await sending
    const restarted = await killed.restart()
    try {
      await Promise.all(sent.map((address) => sendUntilAccepted(restarted, address)))
      for (const address of addresses) {
        const { id } = only(await inboxesAt(restarted, address))
        const before = [...acknowledged].filter(([, to]) => to === address).map(([messageId]) => messageId)
        const messages = await messagesOf(restarted, id, before.length + 4)
        expect(messages.map((message) => message.id)).toEqual(expect.arrayContaining(before))
      }
    } finally {
      await restarted.dispose()
    }
  })
})

/** Sends a mail again while the answer is 451. */
async function sendUntilAccepted(target: Target, address: string): Promise<void> {
  for (;;) {
    try {
      await send(target, address, mail('again'))
      return
    } catch (error) {
      if (!String(error).includes(' 451 ')) throw error
    }
  }
}

describe('mail to an address whose inbox has expired', () => {
  it('makes a new inbox, also after the views were computed again', async () => {
    const folder = await makeFolder()
    const mayfly = await startWithClock(folder.path, Date.now(), { MAYFLY_COUNT_USAGE: 'false' })
    try {
      await mayfly.runAhead(0)
      const address = 'expires@other.example'
      await send(mayfly, address, mail('old'))
      const old = only(await inboxesAt(mayfly, address))
      await mayfly.runAhead(25 * 3_600_000)
      await send(mayfly, address, mail('new'))
      const current = only(await inboxesAt(mayfly, address))
      expect(current.id > old.id).toBe(true)
      expect((await messagesOf(mayfly, current.id, 1)).map(({ subject }) => subject)).toEqual(['new'])
      const expired = await inboxesOf(mayfly, '&state=expired')
      expect(expired.map(({ id }) => id)).toEqual([old.id])
    } finally {
      await mayfly.close()
      await folder.remove()
    }
  })
})

describe('the domains of MAYFLY_ACCEPT_DOMAINS', () => {
  it('are accepted, and no other', async () => {
    const mayfly = await startMayfly({ env: { MAYFLY_ACCEPT_DOMAINS: 'staging.acme.com,*.wild.example' } })
    try {
      for (const address of ['a@staging.acme.com', 'b@one.wild.example', 'c@one.two.wild.example']) {
        await send(mayfly, address, mail('accepted'))
        expect(await inboxesAt(mayfly, address)).toHaveLength(1)
      }
      for (const address of ['a@acme.com', 'b@wild.example', 'c@notwild.example']) {
        expect(await answerToRcpt(mayfly, address)).toMatch(/^550 5\.1\.1 /)
      }
    } finally {
      await mayfly.dispose()
    }
  })
})
