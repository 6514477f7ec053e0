import { MailpitClient } from 'mailpit-api'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  send,
  type InboxJson,
  type ProblemJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { IMAGE, PDF, richMail } from '#test/harness/rich-mail.js'
import { sharedMayfly } from '#test/harness/shared-mayfly.js'

const UNKNOWN = 'inb_01h455vb4pex5vsknk084sn02q.msg_01h455vb4pex5vsknk084sn02q'

describe('the API of Mailpit', () => {
  let mayfly: Mayfly
  /** A key of the scope `inboxes` in an environment of its own, for each test. */
  let own: Target
  let admin: Target
  let client: MailpitClient

  beforeAll(async () => {
    mayfly = await startMayfly({ env: { MAYFLY_MAILPIT_API: 'true' }, hasWebhooks: false })
  })
  afterAll(() => mayfly.dispose())

  beforeEach(async () => {
    admin = withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise' })).key)
    own = withKey(mayfly, await issueKey(admin))
    client = clientOf(own)
  })

  const clientOf = ({ apiKey }: Target) =>
    new MailpitClient(mayfly.url, { auth: { username: 'anyone', password: apiKey } })

  /** Sends one request, and parses the answer if it is JSON. */
  const ask = async (method: string, path: string, options: { body?: string; auth?: string } = {}) => {
    const { body, auth = `Bearer ${own.apiKey}` } = options
    const answer = await fetch(mayfly.url + path, {
      method,
      headers: {
        ...(auth === '' ? {} : { authorization: auth }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    })
    return { status: answer.status, headers: answer.headers, body: (await answer.text()) as unknown }
  }

  const subjectsOf = ({ messages }: { messages: { Subject: string }[] }) =>
    messages.map(({ Subject: subject }) => subject)

  it('lists the mail of all inboxes, newest first, in pages', async () => {
    const one = await createInbox(own)
    const two = await createInbox(own)
    await createInbox(own)
    const inboxes = [one, two, one, one, two]
    for (const [index, { address }] of inboxes.entries()) await send(own, address, mail(`mail ${index}`))
    await messagesOf(own, one.id, 3)
    await messagesOf(own, two.id, 2)
    const all = await client.listMessages()
    expect(subjectsOf(all)).toEqual(['mail 4', 'mail 3', 'mail 2', 'mail 1', 'mail 0'])
    const { messages, ...numbers } = all
    expect(numbers).toEqual({
      total: 5,
      unread: 5,
      count: 5,
      messages_count: 5,
      messages_unread: 5,
      start: 0,
      tags: [],
    })
    expect(messages[0]).toEqual({
      ID: expect.stringMatching(new RegExp(`^${two.id}\\.msg_`)) as string,
      MessageID: '',
      Read: false,
      From: { Name: 'App', Address: 'app@example.com' },
      To: [{ Name: '', Address: 'someone@mayfly.test' }],
      Cc: [],
      Bcc: [{ Name: '', Address: two.address }],
      ReplyTo: [],
      Subject: 'mail 4',
      Created: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      Username: '',
      Tags: [],
      Size: Buffer.byteLength(mail('mail 4')),
      Attachments: 0,
      Snippet: 'Hello.',
    })
    const page = await client.listMessages(1, 2)
    expect(subjectsOf(page)).toEqual(['mail 3', 'mail 2'])
    expect(page).toMatchObject({ total: 5, count: 2, messages_count: 5, start: 1 })
    expect(subjectsOf(await client.listMessages(5, 2))).toEqual([])
    expect(await client.waitForMessages({ count: 5, exact: true })).toMatchObject({ total: 5 })
  })

  it('merges inboxes with more mail than is read at once', async () => {
    const inboxes = await Promise.all([createInbox(own), createInbox(own), createInbox(own)])
    for (let index = 0; index < 75; index += 1) {
      await send(own, (inboxes[index % 3] as InboxJson).address, mail(String(index)))
    }
    for (const { id } of inboxes) await messagesOf(own, id, 25)
    const expected = Array.from({ length: 75 }, (_, index) => String(74 - index))
    expect(subjectsOf(await client.listMessages(0, 1000))).toEqual(expected)
    expect(subjectsOf(await client.listMessages(60, 10))).toEqual(expected.slice(60, 70))
  })

  it('reads a message, its headers, its source and its attachments', async () => {
    const inbox = await createInbox(own)
    const source = richMail(inbox.address).replace(
      'X-Trace:',
      'Message-ID: <rich@app.example>\r\nList-Unsubscribe: <mailto:u@app.example>, <https://app.example/u>\r\nX-Trace:',
    )
    await send(own, inbox.address, source)
    const { id } = only(await messagesOf(own, inbox.id, 1))
    const message = await client.getMessageSummary()
    expect(message).toMatchObject({
      ID: `${inbox.id}.${id}`,
      MessageID: 'rich@app.example',
      From: { Name: 'Äpp', Address: 'no-reply@app.example' },
      To: [{ Name: 'Jo, the tester', Address: inbox.address }, { Address: 'other@example.com' }],
      Cc: [{ Name: 'Carbon', Address: 'cc@example.com' }],
      Bcc: [],
      ReplyTo: [{ Name: 'Support', Address: 'support@app.example' }],
      ReturnPath: 'sender@example.com',
      Subject: 'Grüße: your code is 493201 ✓',
      ListUnsubscribe: { Links: ['mailto:u@app.example', 'https://app.example/u'] },
      Date: '2026-03-01T10:00:00.000Z',
      Tags: [],
      Size: Buffer.byteLength(source),
    })
    expect(message.Text).toContain('Your code is 493-201')
    expect(message.HTML).toContain('<b>493-201</b>')
    expect(await client.getMessageSummary(message.ID)).toEqual(message)

    const [logo, pdf] = [only(message.Inline), only(message.Attachments)]
    expect(logo).toMatchObject({ FileName: 'logo.png', ContentType: 'image/png', Size: IMAGE.length })
    expect(pdf).toMatchObject({ FileName: 'Rechnung März.pdf', ContentType: 'application/pdf' })
    for (const [part, content] of [
      [logo, IMAGE],
      [pdf, PDF],
    ] as const) {
      const blob = await client.getMessageAttachment(message.ID, part.PartID)
      expect(blob.type).toBe(part.ContentType)
      expect(Buffer.from(await blob.arrayBuffer()).equals(content)).toBe(true)
    }
    expect(await client.getMessageSource(message.ID)).toBe(source)
    const headers = await client.getMessageHeaders(message.ID)
    expect(headers).toMatchObject({ 'Message-Id': ['<rich@app.example>'], 'X-Trace': ['folded over lines'] })
    expect(headers.Received).toHaveLength(2)
    expect(await client.listMessages()).toMatchObject({ messages: [{ Attachments: 1 }] })
  })

  it('searches', async () => {
    const { address } = await inboxWith(own, mail('Welcome', 'Your code is 42.'), mail('Goodbye'))
    const { id } = await createInbox(own)
    const found = await client.searchMessages({ query: `addressed:${address} subject:welcome` })
    expect(found).toMatchObject({ total: 2, messages_count: 1, count: 1 })
    expect(subjectsOf(found)).toEqual(['Welcome'])
    expect(subjectsOf(await client.searchMessages({ query: '"code is 42"' }))).toEqual(['Welcome'])
    expect(subjectsOf(await client.searchMessages({ query: '-subject:welcome' }))).toEqual(['Goodbye'])
    expect(await client.searchMessages({ query: id })).toMatchObject({ messages_count: 0, messages: [] })
    const second = await client.searchMessages({ query: 'from:app@example.com', start: 1, limit: 1 })
    expect(second).toMatchObject({ messages_count: 2, count: 1, start: 1 })
    expect(subjectsOf(second)).toEqual(['Welcome'])
  })

  it('has mail to wait for, as soon as it arrives', async () => {
    const inbox = await createInbox(own)
    const waiting = client.waitForMessage(
      { query: `addressed:${inbox.address}` },
      { interval: 50, timeout: 30_000 },
    )
    await send(own, inbox.address, mail('late'))
    expect(await waiting).toMatchObject({ Subject: 'late', Text: 'Hello.\n' })
  })

  it('deletes messages by id, and ignores others', async () => {
    const inbox = await inboxWith(own, mail('one'), mail('two'), mail('three'))
    const { messages } = await client.listMessages()
    const ids = messages.filter(({ Subject: subject }) => subject !== 'two').map(({ ID: id }) => id)
    const others = [UNKNOWN, 'latest', '', 'x.y.z', inbox.id, `${inbox.id}.${UNKNOWN}`]
    expect(await client.deleteMessages({ IDs: [...ids, ...ids, ...others] })).toBe('ok')
    expect(subjectsOf(await client.listMessages())).toEqual(['two'])
    expect(await client.deleteMessages({ IDs: ids })).toBe('ok')
    expect(await messagesOf(own, inbox.id, 1)).toHaveLength(1)
    const gone = await ask('GET', `/api/v1/message/${ids[0] ?? ''}`)
    expectProblem(gone, { status: 410, code: 'message-deleted' })
  })

  it('deletes all mail, and no inbox', async () => {
    const inboxes = [await inboxWith(own, mail('one'), mail('two')), await inboxWith(own, mail('three'))]
    expect(await client.deleteMessages()).toBe('ok')
    expect(await client.listMessages()).toMatchObject({ total: 0, messages: [] })
    expect(await client.deleteMessages({ IDs: [] })).toBe('ok')
    expectProblem(await ask('GET', '/api/v1/message/latest'), { status: 404, code: 'not-found' })
    for (const { id, address } of inboxes) {
      await send(own, address, mail('again'))
      expect(await messagesOf(own, id, 1)).toHaveLength(1)
    }
  })

  it('has no mail of protected inboxes', async () => {
    const inbox = await createInbox(own, { password_protected: true })
    await send(own, inbox.address, mail('secret'))
    const password = (inbox as InboxJson & { password: string }).password
    const headers = { 'mayfly-inbox-password': password }
    const list = `/v1/inboxes/${inbox.id}/messages`
    let id = ''
    while (id === '') {
      const { body } = await call<{ id: string }[]>(own, 'GET', list, { headers })
      id = body[0]?.id ?? ''
    }
    const path = `/api/v1/message/${inbox.id}.${id}`
    expect(await client.listMessages()).toMatchObject({ total: 0, messages: [] })
    expect(await client.searchMessages({ query: 'secret' })).toMatchObject({ messages_count: 0 })
    for (const tail of ['', '/headers', '/raw', '/part/1']) {
      expectProblem(await ask('GET', path + tail), { status: 404, code: 'not-found' })
    }
    await client.deleteMessages({ IDs: [`${inbox.id}.${id}`] })
    await client.deleteMessages()
    expect((await call<unknown[]>(own, 'GET', list, { headers })).body).toHaveLength(1)
  })

  it('has no mail of another environment or account', async () => {
    const inbox = await inboxWith(own, mail('mine'))
    const { ID: id } = await client.getMessageSummary()
    const production = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    const account = withKey(mayfly, (await openAccount(mayfly)).key)
    const stranger = withKey(mayfly, await issueKey(account, { environment: 'staging' }))
    for (const other of [production, stranger]) {
      const theirs = clientOf(other)
      expect(await theirs.listMessages()).toMatchObject({ total: 0, messages: [] })
      expect(await theirs.searchMessages({ query: 'mine' })).toMatchObject({ messages_count: 0 })
      const auth = `Bearer ${other.apiKey}`
      const about = async (path: string) => {
        const { status, body } = await ask('GET', path, { auth })
        return {
          status,
          text: (JSON.parse(String(body)) as ProblemJson).detail.replaceAll(/\w{3}_\w{26}/g, ''),
        }
      }
      for (const tail of ['', '/headers', '/raw', '/part/1']) {
        const answer = await about(`/api/v1/message/${id}${tail}`)
        expect(answer).toEqual(await about(`/api/v1/message/${UNKNOWN}${tail}`))
        expect(answer.status).toBe(404)
      }
      await theirs.deleteMessages({ IDs: [id] })
      await theirs.deleteMessages()
    }
    expect(await messagesOf(own, inbox.id, 1)).toHaveLength(1)
  })

  it('has no mail of an inbox that has ended', async () => {
    const inbox = await inboxWith(own, mail('one'))
    const { ID: id } = await client.getMessageSummary()
    await call(own, 'DELETE', `/v1/inboxes/${inbox.id}`)
    expect(await client.listMessages()).toMatchObject({ total: 0, messages: [] })
    expectProblem(await ask('GET', `/api/v1/message/${id}`), { status: 410, code: 'inbox-deleted' })
    expect(await client.deleteMessages({ IDs: [id] })).toBe('ok')
  })

  it('requires a key, as a bearer token or as the password of Basic', async () => {
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    const path = '/api/v1/messages'
    for (const auth of [basic(`:${own.apiKey}`), basic(`user:${own.apiKey}`), `bearer ${own.apiKey}`]) {
      const { status, headers } = await ask('GET', path, { auth })
      expect(status).toBe(200)
      expect(headers.get('ratelimit-policy')).toMatch(/sustained/)
    }
    const missing = await ask('GET', path, { auth: '' })
    expectProblem(missing, { status: 401, code: 'missing-api-key' })
    expect(missing.headers.get('www-authenticate')).toBe('Basic realm="Mayfly", Bearer')
    const wrong = [
      'Basic',
      'Basic !',
      basic(''),
      basic('x'),
      basic('a:b'),
      basic(`${own.apiKey}:`),
      'Bearer x',
    ]
    for (const auth of wrong) {
      expectProblem(await ask('GET', path, { auth }), { status: 401, code: 'invalid-api-key' })
    }
    for (const unknown of ['/api/v1', '/api/v1/nothing', '/api/v1/message']) {
      expectProblem(await ask('GET', unknown, { auth: '' }), { status: 401, code: 'missing-api-key' })
      expectProblem(await ask('GET', unknown), { status: 404, code: 'not-found' })
    }
    const v1 = await ask('GET', '/v1/inboxes', { auth: basic(`user:${own.apiKey}`) })
    expectProblem(v1, { status: 401, code: 'invalid-api-key' })
  })

  it('requires the scopes of the same requests under /v1', async () => {
    await inboxWith(own, mail('one'))
    const reader = withKey(mayfly, await issueKey(admin, { scopes: ['read'] }))
    const auditor = withKey(mayfly, await issueKey(admin, { scopes: ['audit'] }))
    const { ID: id } = await clientOf(reader).getMessageSummary()
    const refused = { status: 403, code: 'missing-scope' }
    for (const body of [{}, { IDs: [id] }].map((each) => JSON.stringify(each))) {
      const auth = `Bearer ${reader.apiKey}`
      expectProblem(await ask('DELETE', '/api/v1/messages', { body, auth }), refused)
    }
    const auth = `Bearer ${auditor.apiKey}`
    for (const path of [
      'messages',
      'search?query=x',
      `message/${id}`,
      `message/${id}/raw`,
      'message/latest',
    ]) {
      expectProblem(await ask('GET', `/api/v1/${path}`, { auth }), refused)
    }
  })

  it.each([
    ['messages?start=-1', 'start'],
    ['messages?start=x', 'start'],
    ['messages?start=1e3', 'start'],
    ['messages?start=99999999999999999999', 'start'],
    ['messages?limit=0', 'limit'],
    ['messages?limit=1001', 'limit'],
    ['messages?limit=-1', 'limit'],
    ['messages?before=2026-01-01', 'before'],
    ['messages?start=1&start=2', 'start'],
    ['search', 'query'],
    ['search?query=', 'query'],
    ['search?query=is:unread', 'query'],
    ['search?query=a&query=b', 'query'],
    ['search?query=a&tz=Europe/Berlin', 'tz'],
    [`search?query=${'a'.repeat(1_001)}`, 'query'],
    ['search?query[]=a', 'query[]'],
    ['message/latest?query=a', 'query'],
  ])('refuses %s', async (path, parameter) => {
    const answer = await ask('GET', `/api/v1/${path}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter }] })
  })

  it('refuses an invalid body without deleting anything', async () => {
    const inbox = await inboxWith(own, mail('one'))
    const bodies = ['{"ids":[]}', '{"IDs":"x"}', '{"IDs":null}', '{"IDs":[1]}', '[]', '{"Search":"x"}', '{']
    const tooMany = JSON.stringify({ IDs: Array.from({ length: 1_001 }, () => UNKNOWN) })
    for (const body of [...bodies, tooMany]) {
      const { status } = await ask('DELETE', '/api/v1/messages', { body })
      expect([body.slice(0, 20), status]).toEqual([body.slice(0, 20), 400])
    }
    expect(await messagesOf(own, inbox.id, 1)).toHaveLength(1)
  })

  it.each([
    ['PUT', '/api/v1/messages', 405],
    ['DELETE', '/api/v1/search', 405],
    ['POST', '/api/v1/send', 404],
    ['GET', '/api/v1/tags', 404],
    ['GET', '/api/v1/message/latest/html-check', 404],
    ['GET', '/api/v1/message/nothing', 404],
    ['GET', `/api/v1/message/${UNKNOWN}`, 404],
    ['GET', `/api/v1/message/${UNKNOWN}/part/1`, 404],
    ['GET', `/api/v1/message/${'x'.repeat(5_000)}`, 404],
    ['GET', `/api/v1/message/${'.'.repeat(5_000)}`, 404],
    ['GET', '/api/v1/message/%2e%2e%2f', 404],
    ['GET', '/api/v1/message/__proto__', 404],
  ])('answers %s %.40s %i', async (method, path, status) => {
    expect((await ask(method, path)).status).toBe(status)
  })

  it.each(['0', '3', '-1', '01', '1.0', 'x', '1e0', '999999999999', '%00'])(
    'has no part %s',
    async (part) => {
      const inbox = await createInbox(own)
      await send(own, inbox.address, richMail(inbox.address))
      await messagesOf(own, inbox.id, 1)
      const answer = await ask('GET', `/api/v1/message/latest/part/${part}`)
      expectProblem(answer, { status: 404, code: 'not-found' })
    },
  )

  it('sends content that no browser displays', async () => {
    const inbox = await createInbox(own)
    const html = [
      'Content-Type: text/html',
      'Content-Disposition: attachment; filename="a.html"',
      '',
      '<script>',
    ]
    await send(own, inbox.address, html.join('\r\n'))
    await messagesOf(own, inbox.id, 1)
    for (const [tail, type] of [
      ['raw', 'text/plain; charset=utf-8'],
      ['part/1', 'application/octet-stream'],
    ]) {
      const { status, headers } = await ask('GET', `/api/v1/message/latest/${tail ?? ''}`)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toBe(type)
      expect(headers.get('content-disposition')).toMatch(/^attachment;/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-security-policy')).toMatch(/sandbox/)
    }
  })

  it('names an attachment without a name by its type, as its download does', async () => {
    const inbox = await createInbox(own)
    await send(own, inbox.address, 'Content-Type: text/calendar\r\n\r\nBEGIN:VCALENDAR')
    await messagesOf(own, inbox.id, 1)
    const { Attachments } = await client.getMessageSummary('latest')
    expect(Attachments).toMatchObject([{ FileName: 'invitation.ics' }])
    expect((await client.searchMessages({ query: 'invitation.ics' })).messages).toHaveLength(1)
    const { headers } = await ask('GET', '/api/v1/message/latest/part/1')
    expect(headers.get('content-disposition')).toBe('attachment; filename=invitation.ics')
  })

  it('is not in the OpenAPI document, which is the contract of /v1', async () => {
    const { body } = await call<{ paths: object }>(own, 'GET', '/openapi.json')
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/api'))).toEqual([])
  })
})

describe('without MAYFLY_MAILPIT_API', () => {
  it.each(['/api/v1/messages', '/api/v1/search?query=x', '/api/v1/message/latest', '/api/v1'])(
    'there is no %s',
    async (path) => {
      const mayfly = await sharedMayfly()
      for (const headers of [{}, { authorization: `Bearer ${mayfly.apiKey}` }]) {
        expect((await fetch(mayfly.url + path, { headers })).status).toBe(404)
      }
    },
  )
})
