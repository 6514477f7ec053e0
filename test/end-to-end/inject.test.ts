import { createHash, randomUUID } from 'node:crypto'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  only,
  type Answer,
  type InboxJson,
  type MessageJson,
  type ProblemJson,
  type Target,
} from '#test/harness/client.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { listen } from '#test/harness/event-stream.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { IMAGE, richMail } from '#test/harness/rich-mail.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'
import { untilCounted, usageOf } from '#test/harness/usage.js'
import { registerWebhook } from '#test/harness/webhooks.js'

type InjectAnswer = Answer<MessageJson & ProblemJson>

const RFC822 = { 'content-type': 'message/rfc822' }
const SMALL = { from: 'app@example.com', subject: 'hello' }

const pathOf = ({ id }: Pick<InboxJson, 'id'>, family = 'inboxes') => `/v1/${family}/${id}/messages`

function inject(
  target: Target,
  inbox: Pick<InboxJson, 'id'>,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<InjectAnswer> {
  return call(target, 'POST', pathOf(inbox), { body, headers })
}

async function sourceOf(target: Target, { raw_url: path }: MessageJson): Promise<Buffer> {
  const headers = { authorization: `Bearer ${target.apiKey}` }
  return Buffer.from(await (await fetch(target.url + path, { headers })).arrayBuffer())
}

describe('a mail that is put in without SMTP', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it.each([
    { what: 'an ordinary mail', read: (to: string) => richMail(to), sender: 'no-reply@app.example' },
    {
      what: 'bytes that are not UTF-8',
      read: () => 'From: <a@b.example>\r\n\r\n\xff\xfe',
      sender: 'a@b.example',
    },
    { what: 'bare line feeds and dots', read: () => 'Subject: x\n\n.\n..\n', sender: '' },
    { what: 'what is no mail', read: () => '\0', sender: '' },
  ])('keeps $what byte for byte', async ({ read, sender }) => {
    const inbox = await createInbox(mayfly)
    const source = Buffer.from(read(inbox.address), 'latin1')
    const { status, headers, body } = await inject(mayfly, inbox, source, RFC822)
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(`${pathOf(inbox)}/${body.id}`)
    expect(body).toMatchObject({
      ...{ injected: true, inbox_id: inbox.id, size: source.length, sender, recipient: inbox.address },
      sha256: createHash('sha256').update(source).digest('hex'),
      envelope: {
        mail_from: sender,
        rcpt_to: inbox.address,
        helo: '',
        remote_address: '127.0.0.1',
        tls: null,
      },
    })
    expect(body).not.toHaveProperty('raw')
    expect(await sourceOf(mayfly, body)).toEqual(source)
    expect((await call(mayfly, 'GET', headers.get('location') ?? '')).body).toMatchObject(body)
    expect(await messagesOf(mayfly, inbox.id, 1)).toEqual([body])
  })

  it('is made from JSON, with HTML, headers and attachments', async () => {
    const inbox = await createInbox(mayfly)
    const { status, body } = await inject(mayfly, inbox, {
      from: 'Äpp, the sender <no-reply@app.example>',
      subject: 'Grüße: your code ✓',
      text: 'Your code is 493201.\n',
      html: '<p>Your code is <b>493201</b>. <a href="https://app.example/verify?t=1">Verify</a></p>',
      headers: { 'X-Campaign': 'spring', 'reply-to': 'Support <help@app.example>' },
      attachments: [
        { filename: 'Grüße.png', content_type: 'image/png', content: IMAGE.toString('base64') },
        { filename: 'empty "quoted"; x=y.txt', content_type: 'text/plain', content: '' },
      ],
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      ...{ injected: true, subject: 'Grüße: your code ✓', text: 'Your code is 493201.\n' },
      from: [{ name: 'Äpp, the sender', address: 'no-reply@app.example' }],
      to: [{ name: null, address: inbox.address }],
      reply_to: [{ name: 'Support', address: 'help@app.example' }],
      ...{ sender: 'no-reply@app.example', recipient: inbox.address, warnings: [] },
      codes: [{ value: '493201' }],
      links: [{ href: 'https://app.example/verify?t=1', text: 'Verify' }],
      attachments: [
        { filename: 'Grüße.png', content_type: 'image/png', size: IMAGE.length },
        { filename: 'empty "quoted"; x=y.txt', content_type: 'text/plain', size: 0 },
      ],
    })
    expect(body.headers).toContainEqual({ name: 'X-Campaign', value: 'spring' })
    const digest = createHash('sha256').update(IMAGE).digest('hex')
    expect(body.attachments[0]).toMatchObject({ sha256: digest })
    const [other] = await messagesOf(mayfly, inbox.id, 1)
    expect(other).toEqual(body)
  })

  it.each([
    { from: 'a@b.example', expected: { name: null, address: 'a@b.example' } },
    { from: '<a@b.example>', expected: { name: null, address: 'a@b.example' } },
    { from: '"Doe, Jo" <a+b@b.example>', expected: { name: 'Doe, Jo', address: 'a+b@b.example' } },
    { from: 'Jo (QA); "x" <a@b.example>', expected: { name: 'Jo (QA); "x"', address: 'a@b.example' } },
  ])('may be from $from', async ({ from, expected }) => {
    const inbox = await createInbox(mayfly)
    const { body } = await inject(mayfly, inbox, { ...SMALL, from })
    expect(body).toMatchObject({ from: [expected], sender: expected.address, text: null, html: null })
    expect(body.envelope.mail_from).toBe(expected.address)
  })

  it('may have texts of a megabyte and another To', async () => {
    const inbox = await createInbox(mayfly)
    const text = `${'ü'.repeat(500)}\n`.repeat(900)
    const { status, body } = await inject(mayfly, inbox, {
      ...{ ...SMALL, text, headers: { TO: 'Jo <jo@example.com>' } },
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({ text, to: [{ name: 'Jo', address: 'jo@example.com' }] })
    expect(body.recipient).toBe(inbox.address)
  })

  it('is seen by waits, streams and counts like any other', async () => {
    const run = randomUUID()
    const inbox = await createInbox(mayfly, { labels: { run } })
    const events = await listen(mayfly, `/v1/inboxes/${inbox.id}/events`)
    const all = await listen(mayfly, `/v1/events?label=run:${run}`)
    const waits = [
      call<MessageJson>(mayfly, 'GET', `${pathOf(inbox)}/wait?has_code=true&timeout=50`),
      call<MessageJson>(mayfly, 'GET', `/v1/messages/wait?label=run:${run}&timeout=50`),
      call<{ count: number }>(mayfly, 'GET', `/v1/messages/wait?label=run:${run}&count=2&timeout=50`),
    ] as const
    try {
      const first = await inject(mayfly, inbox, { ...SMALL, text: 'Your code is 493201.' })
      for (const wait of [waits[0], waits[1]]) expect((await wait).body).toEqual(first.body)
      const source = mail('second')
      const second = await inject(mayfly, inbox, source, RFC822)
      expect((await waits[2]).body).toMatchObject({ count: 2, inboxes: 1 })
      for (const client of [events, all]) {
        const received = await client.count(2)
        expect(received.map(({ data }) => data.data)).toEqual([first.body, second.body])
      }
      const { body: history } = await call<{ type: string; message_id: string; key_id: string }[]>(
        mayfly,
        'GET',
        `/v1/inboxes/${inbox.id}/history`,
      )
      const received = history.filter(({ type }) => type === 'message.received')
      expect(received.map(({ message_id: id }) => id)).toEqual([first.body.id, second.body.id])
      const { body } = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
      expect(body.message_count).toBe(2)
    } finally {
      events.close()
      all.close()
    }
  })

  it('has links of the family of the request', async () => {
    const inbox = await createInbox(mayfly)
    const answer = await call<MessageJson>(mayfly, 'POST', pathOf(inbox, 'emails'), { body: SMALL })
    const path = `${pathOf(inbox, 'emails')}/${answer.body.id}`
    expect(answer).toMatchObject({ status: 201, body: { raw_url: `${path}/raw` } })
    expect(answer.headers.get('location')).toBe(path)
  })

  it.each([
    { what: 'JSON', first: SMALL, other: { ...SMALL, subject: 'other' }, headers: {} },
    { what: 'a source', first: mail('one'), other: mail('two'), headers: RFC822 },
    { what: 'a large mail', first: { ...SMALL, text: 'x'.repeat(1 << 20) }, other: SMALL, headers: {} },
  ])('is put in once however often $what is repeated', async ({ first, other, headers }) => {
    const inbox = await createInbox(mayfly)
    const withKey = { ...headers, 'idempotency-key': randomUUID() }
    const answers = [
      await inject(mayfly, inbox, first, withKey),
      await inject(mayfly, inbox, first, withKey),
    ] as const
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    expect(answers[1].body).toEqual(answers[0].body)
    expect(answers[1].headers.get('idempotent-replayed')).toBe('true')
    expect(answers[1].headers.get('location')).toBe(answers[0].headers.get('location'))
    expectProblem(await inject(mayfly, inbox, other, withKey), {
      status: 422,
      code: 'idempotency-key-reused',
    })
    await inject(mayfly, inbox, SMALL)
    expect(await messagesOf(mayfly, inbox.id, 2)).toHaveLength(2)
  })

  it('can not be read any more by repeating the request once it is deleted', async () => {
    const inbox = await createInbox(mayfly)
    const headers = { 'idempotency-key': randomUUID() }
    const { body } = await inject(mayfly, inbox, SMALL, headers)
    await call(mayfly, 'DELETE', `${pathOf(inbox)}/${body.id}`)
    expectProblem(await inject(mayfly, inbox, SMALL, headers), { status: 410, code: 'message-deleted' })
  })

  it('is not subject to the faults of its inbox', async () => {
    const inbox = await createInbox(mayfly)
    const faults = [
      { stage: 'rcpt', action: 'reject' },
      { stage: 'after_accept', action: 'drop' },
    ]
    await call(mayfly, 'PUT', `/v1/inboxes/${inbox.id}/faults`, { body: faults })
    expect((await inject(mayfly, inbox, SMALL)).status).toBe(201)
    only(await messagesOf(mayfly, inbox.id, 1))
  })

  it('needs the password of a protected inbox, and the scope inboxes', async () => {
    const inbox = await createInbox(mayfly, { password_protected: true })
    const { password = '' } = inbox as { password?: string }
    expectProblem(await inject(mayfly, inbox, SMALL), { status: 403, code: 'inbox-password-required' })
    const wrong = { 'mayfly-inbox-password': 'wrong' }
    expectProblem(await inject(mayfly, inbox, SMALL, wrong), { status: 403, code: 'inbox-password-invalid' })
    expect((await inject(mayfly, inbox, SMALL, { 'mayfly-inbox-password': password })).status).toBe(201)
    const reader = await issueKey(mayfly, { scopes: ['read'], environment: 'development' })
    const refused = await inject(withKey(mayfly, reader), await createInbox(mayfly), SMALL)
    expectProblem(refused, { status: 403, code: 'missing-scope' })
  })

  it('is refused by an inbox that is full, has ended or does not exist', async () => {
    const account = await openAccount(mayfly.operator, { plan: 'enterprise', limits: { max_messages: 1 } })
    const own = withKey(mayfly, await issueKey(withKey(mayfly, account.key)))
    const inbox = await createInbox(own)
    const headers = { 'idempotency-key': randomUUID() }
    expect((await inject(own, inbox, SMALL, headers)).status).toBe(201)
    expectProblem(await inject(own, inbox, SMALL), { status: 409, code: 'inbox-full', detail: /1 messages/ })
    expect((await inject(own, inbox, SMALL, headers)).status).toBe(201)
    expectProblem(await inject(mayfly, inbox, SMALL), { status: 404, code: 'not-found' })
    await call(own, 'DELETE', `/v1/inboxes/${inbox.id}`)
    expectProblem(await inject(own, inbox, SMALL), { status: 410, code: 'inbox-deleted' })
  })

  it('fills an inbox exactly, also in concurrent requests', async () => {
    const account = await openAccount(mayfly.operator, { plan: 'enterprise', limits: { max_messages: 3 } })
    const own = withKey(mayfly, await issueKey(withKey(mayfly, account.key)))
    const inbox = await createInbox(own)
    const answers = await Promise.all(Array.from({ length: 10 }, () => inject(own, inbox, SMALL)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      ...[201, 201, 201],
      ...[409, 409, 409, 409, 409, 409, 409],
    ])
    await messagesOf(own, inbox.id, 3)
  })

  const attachment = { filename: 'a.txt', content_type: 'text/plain', content: 'SGVsbG8=' }
  it.each<{ body: object; at: string }>([
    ...[
      '',
      'app',
      'a@b@c.example',
      'a@b.example, c@d.example',
      'a@b.example\r\nBcc: c@d.example',
      '@',
      7,
    ].map((from) => ({ body: { from }, at: '/from' })),
    ...['Jo <a@b.example', 'Jo <a@b.example> x', `${'a'.repeat(65)}@b.example`, '\ud800 <a@b.example>'].map(
      (from) => ({ body: { from }, at: '/from' }),
    ),
    ...['a\r\nBcc: c@d.example', 'a\nb', '\0', 'a'.repeat(999), null].map((subject) => ({
      body: { subject },
      at: '/subject',
    })),
    { body: { text: 7 }, at: '/text' },
    { body: { text: '\udc00' }, at: '/text' },
    { body: { html: 'a'.repeat(1_048_577) }, at: '/html' },
    { body: { to: 'a@b.example' }, at: '/to' },
    { body: { path: '/etc/passwd' }, at: '/path' },
    ...[
      ...[
        [],
        'X: y',
        { 'X-A': 'b\r\nBcc: c' },
        { 'X-A': 7 },
        { 'X-A': '' },
        { 'X-A': { path: '/etc/passwd' } },
      ],
      ...['X A', 'X:A', '', 'X-Ä', 'From', 'SUBJECT', 'Bcc', 'content-type', 'MIME-Version'].map((name) => ({
        [name]: 'x',
      })),
      Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`X-${index}`, 'x'])),
    ].map((headers) => ({ body: { headers }, at: '/headers' })),
    { body: { attachments: attachment }, at: '/attachments' },
    { body: { attachments: Array.from({ length: 21 }, () => attachment) }, at: '/attachments' },
    { body: { attachments: ['SGVsbG8='] }, at: '/attachments/0' },
    {
      body: { attachments: [attachment, { ...attachment, path: '/etc/passwd' }] },
      at: '/attachments/1/path',
    },
    ...['SGVsbG8', 'SGV sbG8', 'SGVsbG8\n', '____', 'SGVsbG8=SGVsbG8=', { path: '/etc/passwd' }, 'é==='].map(
      (content) => ({ body: { attachments: [{ ...attachment, content }] }, at: '/attachments/0/content' }),
    ),
    ...['', 'a\r\nX: y', 'a\0', 'a'.repeat(256)].map((filename) => ({
      body: { attachments: [{ ...attachment, filename }] },
      at: '/attachments/0/filename',
    })),
    ...['text', 'text/', 'text/plain; charset=x', 'text/pl ain', 'Multipart/mixed', 'text/plain\r\nX: y'].map(
      (type) => ({
        body: { attachments: [{ ...attachment, content_type: type }] },
        at: '/attachments/0/content_type',
      }),
    ),
  ])('is refused for $at (%#)', async ({ body, at }) => {
    const inbox = await createInbox(mayfly)
    const answer = await inject(mayfly, inbox, { ...SMALL, ...body })
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ pointer: at }] })
    expect((await call(mayfly, 'GET', pathOf(inbox))).body).toEqual([])
  })

  it.each([
    {
      what: 'an empty source',
      path: '',
      type: 'message/rfc822',
      body: '',
      status: 400,
      code: 'invalid-request',
    },
    {
      what: 'an empty object',
      path: '',
      type: 'application/json',
      body: '{}',
      status: 400,
      code: 'invalid-request',
    },
    { what: 'a list', path: '', type: 'application/json', body: '[]', status: 400, code: 'invalid-request' },
    { what: 'no JSON', path: '', type: 'application/json', body: '{', status: 400, code: 'malformed-json' },
    { what: 'a text', path: '', type: 'text/plain', body: 'x', status: 415, code: 'unsupported-media-type' },
    {
      what: 'a similar type',
      path: '',
      type: 'message/rfc8222',
      body: 'x',
      status: 415,
      code: 'unsupported-media-type',
    },
    {
      what: 'a source elsewhere',
      path: '/../tokens',
      type: 'message/rfc822',
      body: 'x',
      status: 415,
      code: 'unsupported-media-type',
    },
  ])('is refused as $what', async ({ path, type, body, status, code }) => {
    const inbox = await createInbox(mayfly)
    const url = path === '' ? pathOf(inbox) : `/v1/inboxes/${inbox.id}/tokens`
    const answer = await call(mayfly, 'POST', url, { body, headers: { 'content-type': type } })
    expectProblem(answer, { status, code })
  })

  it('is refused if it is compressed, and accepted with parameters of its type', async () => {
    const inbox = await createInbox(mayfly)
    const gzip = { ...RFC822, 'content-encoding': 'gzip' }
    const refused = await inject(mayfly, inbox, mail('one'), gzip)
    expectProblem(refused, { status: 415, code: 'unsupported-media-type', detail: /gzip/ })
    const type = { 'content-type': 'Message/RFC822; charset=utf-8' }
    expect((await inject(mayfly, inbox, mail('one'), type)).status).toBe(201)
  })

  it('may be as large as mail by SMTP, as JSON up to two megabytes', async () => {
    const inbox = await createInbox(mayfly)
    const large = Buffer.from(`${mail('large')}${'0123456789abcdef\r\n'.repeat(500_000)}`)
    // While the process is busy, so large a body may be refused.
    const { status, body } = await until('an answer but 503', async () => {
      const answer = await inject(mayfly, inbox, large, RFC822)
      return answer.status === 503 ? null : answer
    })
    expect({ status, size: body.size }).toEqual({ status: 201, size: large.length })
    expect((await sourceOf(mayfly, body)).equals(large)).toBe(true)
    const padded = { ...SMALL, text: 'x'.repeat(1_000_000), html: 'x'.repeat(1_000_000) }
    expect((await inject(mayfly, inbox, padded)).status).toBe(201)
    const refused = await inject(mayfly, inbox, Buffer.alloc(2_097_153, 0x20))
    expectProblem(refused, { status: 413, code: 'body-too-large', detail: /2097152 bytes/ })
    const elsewhere = await call(mayfly, 'POST', '/v1/inboxes', { body: Buffer.alloc(262_145, 0x20) })
    expectProblem(elsewhere, { status: 413, code: 'body-too-large', detail: /262144 bytes/ })
  })
})

describe('mail that is put in without SMTP', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', MAYFLY_MAX_MESSAGE_BYTES: '50000' }
    mayfly = await startMayfly({ hasWebhooks: true, hasAnalytics: true, env })
  })
  afterAll(() => mayfly.dispose())

  it('is delivered to webhooks, and counted', async () => {
    const endpoint = await startEndpoint()
    try {
      const account = await openAccount(mayfly)
      const own = withKey(mayfly, await issueKey(withKey(mayfly, account.key)))
      const inbox = await createInbox(own)
      await registerWebhook(own, `/v1/inboxes/${inbox.id}/webhooks`, { url: endpoint.url })
      const { body } = await inject(own, inbox, mail('one'), RFC822)
      const request = await until('a delivery', () => endpoint.requests[0] ?? null)
      expect((JSON.parse(request.body) as { data: object }).data).toEqual(body)
      const rows = await untilCounted(
        () => usageOf(own),
        (found) => found.some(({ mails }) => mails > 0),
      )
      expect(rows.reduce((sum, { mails }) => sum + mails, 0)).toBe(1)
      expect(rows.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(body.size)
    } finally {
      await endpoint.dispose()
    }
  })

  it('may not be larger than MAYFLY_MAX_MESSAGE_BYTES, also if it is made from JSON', async () => {
    const inbox = await createInbox(mayfly)
    const source = Buffer.alloc(50_001, 0x20)
    for (const answer of [
      await inject(mayfly, inbox, source, RFC822),
      await inject(mayfly, inbox, { ...SMALL, text: 'x'.repeat(50_000) }),
    ]) {
      expectProblem(answer, { status: 413, code: 'body-too-large', detail: /50000 bytes/ })
    }
    const lines = `Subject: lines\r\n\r\n${'a\r\n\r\n'.repeat(10_000)}`.slice(0, 50_000)
    const accepted = await inject(mayfly, inbox, Buffer.from(lines), RFC822)
    expect({ status: accepted.status, size: accepted.body.size }).toEqual({ status: 201, size: 50_000 })
    const refused = await inject(mayfly, inbox, Buffer.from(`${lines}\n`), RFC822)
    expectProblem(refused, { status: 413, code: 'body-too-large', detail: /50000 bytes/ })
    expect((await inject(mayfly, inbox, source.subarray(1), RFC822)).status).toBe(201)
  })
})
