import { createHash } from 'node:crypto'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  send,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { IMAGE, PDF, richMail } from '#test/harness/rich-mail.js'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('a message', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it('has every property of the contract', async () => {
    const inbox = await createInbox(mayfly)
    const source = richMail(inbox.address)
    const answer = await send(mayfly, inbox.address, source)
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    expect(answer).toContain(id)
    const path = `/v1/inboxes/${inbox.id}/messages/${id}`
    const { status, body } = await call<MessageJson & { received_at: string }>(mayfly, 'GET', path)
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^msg_[0-7][0-9a-z]{25}$/) as unknown,
      inbox_id: inbox.id,
      received_at: expect.stringMatching(TIME) as unknown,
      subject: 'Grüße: your code is 493201 ✓',
      sender: 'no-reply@app.example',
      recipient: inbox.address,
      recipient_detail: null,
      from: [
        { name: 'Äpp', address: 'no-reply@app.example' },
        { name: null, address: 'second@app.example' },
      ],
      to: [
        { name: 'Jo, the tester', address: inbox.address },
        { name: null, address: 'other@example.com' },
      ],
      cc: [{ name: 'Carbon', address: 'cc@example.com' }],
      reply_to: [{ name: 'Support', address: 'support@app.example' }],
      date: '2026-03-01T10:00:00.000Z',
      text: expect.stringContaining(
        'Your code is 493-201 – vérifiez: https://app.example/verify?t=1',
      ) as unknown,
      html: expect.stringContaining('<a href="https://app.example/verify?t=1&amp;x=2">Verify</a>') as unknown,
      visible_text: 'Your code is 493-201 Verify',
      links: [
        { href: 'https://app.example/verify?t=1&x=2', text: 'Verify' },
        { href: 'https://app.example/verify?t=1', text: null },
      ],
      codes: expect.arrayContaining([
        {
          value: '493201',
          text: expect.stringMatching(/^493-?201$/) as unknown,
          confidence: expect.any(Number) as unknown,
        },
      ]) as unknown,
      attachments: [
        {
          index: 0,
          filename: 'logo.png',
          content_type: 'image/png',
          size: IMAGE.length,
          content_id: 'logo@app.example',
          inline: true,
          sha256: sha256(IMAGE),
        },
        {
          index: 1,
          filename: 'Rechnung März.pdf',
          content_type: 'application/pdf',
          size: PDF.length,
          content_id: null,
          inline: false,
          sha256: sha256(PDF),
        },
      ],
      headers: expect.arrayContaining([
        { name: 'Subject', value: 'Grüße: your code is 493201 ✓' },
        { name: 'X-Trace', value: 'folded over lines' },
      ]) as unknown,
      envelope: {
        mail_from: 'sender@example.com',
        rcpt_to: inbox.address,
        helo: expect.any(String) as unknown,
        remote_address: '127.0.0.1',
        tls: null,
      },
      authentication: { spf: null, dkim: [], dmarc: null },
      size: Buffer.byteLength(source),
      sha256: sha256(source),
      raw_url: `${path}/raw`,
      warnings: [],
      raw: source,
      raw_encoding: 'utf-8',
    })
    expect(Math.abs(Date.parse(body.received_at) - Date.now())).toBeLessThan(60_000)
    expect((body as unknown as { headers: { name: string }[] }).headers.map(({ name }) => name)).toEqual([
      'Received',
      'Received',
      'From',
      'To',
      'Cc',
      'Reply-To',
      'Subject',
      'X-Trace',
      'Date',
      'MIME-Version',
      'Content-Type',
    ])
  })

  it('is the same in a list and by id, except for its source', async () => {
    const inbox = await inboxWith(mayfly, mail('the same'))
    const listed = only(await messagesOf(mayfly, inbox.id, 1))
    expect(listed).not.toHaveProperty('raw')
    expect(listed).not.toHaveProperty('raw_encoding')
    const path = `/v1/inboxes/${inbox.id}/messages/${listed.id}`
    expect((await call(mayfly, 'GET', `${path}?raw=false`)).body).toEqual(listed)
    expect((await call(mayfly, 'GET', `${path}?raw=true`)).body).toMatchObject({
      ...listed,
      raw_encoding: 'utf-8',
    })
    expect((await call(mayfly, 'GET', path)).body).toMatchObject({ ...listed, raw: mail('the same') })
  })

  it.each([
    {
      name: 'text alone',
      source: 'Subject: x\r\n\r\nplain\r\n',
      has: {
        subject: 'x',
        text: 'plain\n',
        html: null,
        from: [],
        sender: 'sender@example.com',
        date: null,
      },
    },
    {
      name: 'HTML alone',
      source: 'Content-Type: text/html\r\n\r\n<p>rich</p>\r\n',
      has: { subject: null, text: null, html: '<p>rich</p>\n', visible_text: 'rich', links: [], codes: [] },
    },
    {
      name: 'no header, no body',
      source: '\r\n',
      has: { subject: null, html: null, visible_text: null, to: [], cc: [], reply_to: [], attachments: [] },
    },
    {
      name: 'a bad date',
      source: 'Date: whenever\r\n\r\n\r\n',
      has: { date: null, warnings: [{ code: 'invalid-date' }] },
    },
  ])('has null or empty properties if the mail lacks them: $name', async ({ source, has }) => {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, source)
    const message = only(await messagesOf(mayfly, inbox.id, 1))
    expect(message).toMatchObject(has)
  })

  it('reaches each recipient, with the address that it was sent to', async () => {
    const [one, two] = [await createInbox(mayfly), await createInbox(mayfly)]
    const tagged = two.address.replace('@', '+tag@')
    await send(mayfly, [one.address, tagged], mail('for two'))
    const [first, second] = await Promise.all([messagesOf(mayfly, one.id, 1), messagesOf(mayfly, two.id, 1)])
    expect(only(first)).toMatchObject({ recipient: one.address, envelope: { rcpt_to: one.address } })
    expect(only(second)).toMatchObject({ recipient: tagged, envelope: { rcpt_to: tagged } })
    expect(only(first).id).not.toBe(only(second).id)
  })

  it('is counted by its inbox', async () => {
    const inbox = await inboxWith(mayfly, mail('one'), mail('two'))
    const read = async () => (await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)).body
    const [, last] = await messagesOf(mayfly, inbox.id, 2)
    expect(await read()).toMatchObject({ message_count: 2, last_message_at: received(last) })
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${last?.id ?? ''}`)
    expect(await read()).toMatchObject({ message_count: 1 })
  })

  it('is deleted permanently, and a repeat gets the same answer', async () => {
    const inbox = await inboxWith(mayfly, mail('stays'), mail('goes'))
    const [, goes] = await messagesOf(mayfly, inbox.id, 2)
    const path = `/v1/inboxes/${inbox.id}/messages/${goes?.id ?? ''}`
    const first = await call(mayfly, 'DELETE', path)
    expect(first.status).toBe(200)
    expect(first.body).toEqual({ id: goes?.id, deleted_at: expect.stringMatching(TIME) as unknown })
    expect((await call(mayfly, 'DELETE', path)).body).toEqual(first.body)
    for (const way of [path, `${path}?raw=false`, `${path}/raw`, `${path}/attachments/0`]) {
      expectProblem(await call(mayfly, 'GET', way), { status: 410, code: 'message-deleted' })
    }
    expect(only(await messagesOf(mayfly, inbox.id, 1)).subject).toBe('stays')
  })

  it('is refused if its inbox is full, until a message is deleted', async () => {
    const body = { name: 'of two mails', plan: 'enterprise', limits: { max_messages: 2 } }
    const opened = await call<{ key: { secret: string } }>(mayfly.operator, 'POST', '/v1/accounts', { body })
    const admin = { ...mayfly, apiKey: opened.body.key.secret }
    const wanted = { name: 'of two mails', environment: 'development' }
    const issued = await call<{ secret: string }>(admin, 'POST', '/v1/keys', { body: wanted })
    const target = { ...mayfly, apiKey: issued.body.secret }
    const inbox = await inboxWith(target, mail('one'), mail('two'))
    await expect(send(target, inbox.address, mail('three'))).rejects.toThrow(/552 5\.2\.2 /)
    const [{ id } = { id: '' }] = await messagesOf(target, inbox.id, 2)
    expect((await call(target, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${id}`)).status).toBe(200)
    await send(target, inbox.address, mail('four'))
    const messages = await messagesOf(target, inbox.id, 2)
    expect(messages.map(({ subject }) => subject)).toEqual(['two', 'four'])
  })

  it('is not found in another inbox or an unknown one', async () => {
    const inbox = await inboxWith(mayfly, mail('here'))
    const other = await createInbox(mayfly)
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    for (const messageId of [id, 'msg_01h455vb4pex5vsknk084sn02q', 'garbage', '%00', 'a'.repeat(1_000)]) {
      const path = `/v1/inboxes/${other.id}/messages/${messageId}`
      for (const [method, tail] of [
        ['GET', ''],
        ['GET', '/raw'],
        ['GET', '/attachments/0'],
        ['DELETE', ''],
      ] as const) {
        expectProblem(await call(mayfly, method, path + tail), { status: 404, code: 'not-found' })
      }
    }
    expect((await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages/${id}`)).status).toBe(200)
  })

  it.each(['raw=1', 'raw=', 'raw=false&raw=true', 'limit=1', 'toString=1'])('refuses ?%s', async (query) => {
    const inbox = await inboxWith(mayfly, mail('x'))
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    const answer = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages/${id}?${query}`)
    const at = [{ parameter: query.split('=')[0] ?? '' }]
    expectProblem(answer, { status: 400, code: 'invalid-request', at })
  })
})

function received(message: MessageJson | undefined): string | undefined {
  return (message as (MessageJson & { received_at: string }) | undefined)?.received_at
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
