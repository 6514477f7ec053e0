import {
  call,
  createInbox,
  messagesOf,
  send,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

const PLAIN = 'Content-Type: text/plain; charset=utf-8'
const HTML = 'Content-Type: text/html; charset=utf-8'

/** By the name in the X-Name header, which no filter reads. */
const MAILS = {
  code: [
    'From: Äpp Store <No-Reply@shop.example>',
    'Subject: Your CODE is 493201',
    PLAIN,
    '',
    'It is 493201.',
  ],
  link: [
    'From: bob@example.com',
    'Subject: Größe bestätigen',
    PLAIN,
    '',
    'See https://app.example/verify to con\u00adfirm',
    'your address.',
  ],
  html: [
    'From: "Carol, C." <carol@example.com>',
    'Subject: Rich',
    HTML,
    '',
    '<style>hidden{}</style><p title="tip">Vis&iuml;ble <b>wo</b>rds</p><script>secret()</script>',
  ],
  both: [
    'From: dave@example.com',
    'Subject: 100% [a-z]+ (both)',
    HTML,
    '',
    '<a href="https://x.example/">Confirm</a> Your verification code: <b>778899</b>',
  ],
  bare: ['X-Nothing: at all', '', ''],
}

describe('match filters', () => {
  let mayfly: SharedMayfly
  let inbox: InboxJson
  const names = new Map<string, string>()

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    inbox = await createInbox(mayfly)
    for (const [name, lines] of Object.entries(MAILS)) {
      const to = name === 'link' ? inbox.address.replace('@', '+Tagged@') : inbox.address
      const response = await send(mayfly, to, lines.join('\r\n'))
      names.set(/msg_\w+/.exec(response)?.[0] ?? '', name)
    }
    await messagesOf(mayfly, inbox.id, Object.keys(MAILS).length)
  })

  const list = (query: Record<string, string>) =>
    call<MessageJson[]>(
      mayfly,
      'GET',
      `/v1/inboxes/${inbox.id}/messages?${new URLSearchParams(query).toString()}`,
    )

  it.each([
    { where: { subject: 'code' }, match: ['code'] },
    { where: { subject: 'YOUR code' }, match: ['code'] },
    { where: { subject: 'größe' }, match: ['link'] },
    { where: { subject: 'GRÖSSE' }, match: ['link'] },
    { where: { subject: 'gro\u0308ße\u00a0bestätigen' }, match: ['link'] },
    { where: { subject: '100% [a-z]+ (' }, match: ['both'] },
    { where: { subject: '.*' }, match: [] },
    { where: { subject: '493201.' }, match: [] },
    { where: { sender: 'no-reply@SHOP.example' }, match: ['code'] },
    { where: { sender: 'äpp store' }, match: ['code'] },
    { where: { sender: 'example.com' }, match: ['link', 'html', 'both', 'bare'] },
    { where: { sender: 'carol, c.' }, match: ['html'] },
    { where: { sender: 'sender@example.com' }, match: ['bare'] },
    { where: { recipient: '+tagged@' }, match: ['link'] },
    { where: { recipient: 'mayfly.test' }, match: ['code', 'link', 'html', 'both', 'bare'] },
    { where: { recipient: 'elsewhere' }, match: [] },
    { where: { detail: 'tagged' }, match: ['link'] },
    { where: { detail: '' }, match: ['link'] },
    { where: { detail: 'mayfly.test' }, match: [] },
    { where: { text: 'it is 493201' }, match: ['code'] },
    { where: { text: 'VERIFY' }, match: ['link'] },
    { where: { text: 'confirm  your\u00a0address' }, match: ['link'] },
    { where: { header: 'subject:GRÖSSE  B' }, match: ['link'] },
    { where: { header: 'Subject: GRÖSSE B ' }, match: ['link'] },
    { where: { text: 'visïble words' }, match: ['html'] },
    { where: { text: 'hidden' }, match: [] },
    { where: { text: 'secret' }, match: [] },
    { where: { text: '<p' }, match: [] },
    { where: { text: 'confirm your verification' }, match: ['both'] },
    { where: { text: 'rich' }, match: [] },
    { where: { has_code: 'true' }, match: ['code', 'both'] },
    { where: { has_code: 'false' }, match: ['link', 'html', 'bare'] },
    { where: { has_link: 'true' }, match: ['link', 'both'] },
    { where: { has_link: 'false' }, match: ['code', 'html', 'bare'] },
    { where: { has_code: 'true', has_link: 'true' }, match: ['both'] },
    { where: { has_code: 'true', has_link: 'false' }, match: ['code'] },
    { where: { subject: 'code', sender: 'shop', text: '493', has_code: 'true' }, match: ['code'] },
    { where: { subject: 'code', sender: 'bob' }, match: [] },
  ])('$where: $match', async ({ where, match }) => {
    for (const order of ['asc', 'desc']) {
      const { status, body } = await list({ ...where, order })
      expect(status).toBe(200)
      const found = body.map(({ id }) => names.get(id))
      expect(found).toEqual(order === 'asc' ? match : match.toReversed())
    }
  })

  it('searches exactly the visible_text of HTML', async () => {
    const shown = new Map(
      (await list({})).body.map(({ id, text, visible_text: visible }) => [names.get(id), { text, visible }]),
    )
    expect(shown.get('html')).toEqual({ text: null, visible: 'Visïble words' })
    expect(shown.get('both')).toEqual({ text: null, visible: 'Confirm Your verification code: 778899' })
    expect(shown.get('code')).toEqual({ text: 'It is 493201.\n', visible: null })
    for (const name of ['html', 'both']) {
      const { body } = await list({ text: shown.get(name)?.visible ?? '' })
      expect(body.map(({ id }) => names.get(id))).toEqual([name])
    }
  })

  it.each([
    { query: 'has_code=1', parameter: 'has_code' },
    { query: 'has_code=TRUE', parameter: 'has_code' },
    { query: 'has_code=', parameter: 'has_code' },
    { query: 'has_link=yes', parameter: 'has_link' },
    { query: 'has_link=true&has_link=true', parameter: 'has_link' },
    { query: 'subject=a&subject=b', parameter: 'subject' },
    { query: `text=${'a'.repeat(1_001)}`, parameter: 'text' },
    { query: 'html=x', parameter: 'html' },
    { query: 'Subject=x', parameter: 'Subject' },
    { query: 'from=x', parameter: 'from' },
  ])('refuses ?$query, naming $parameter', async ({ query, parameter }) => {
    const answer = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages?${query}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter }] })
  })
})
