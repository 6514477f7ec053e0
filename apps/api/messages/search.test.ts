import { inboxIdIn } from '#libs/ports/read-model/read-model-harness.contract.js'
import { messageId } from '#libs/domain/inbox/inbox.test-support.js'
import { parseMail } from '#libs/mail/parse.js'
import type { Address } from '#libs/domain/inbox/events.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { richMail } from '#test/harness/rich-mail.js'
import { Problem } from '../http/problems.js'
import { MAILPIT, matchesSearch, OWN, parseSearch, type Searchable } from './search.js'

function message(source: string): Searchable {
  const envelope = { ...anyEnvelope, rcptTo: 'k3v9@mayfly.test' }
  const mail = parseMail(Buffer.from(source), envelope)
  const receivedAt = new Date('2026-03-01T10:00:00.000Z')
  const inboxId = inboxIdIn(1)
  const inbox = { id: inboxId, address: 'k3v9@mayfly.test' as Address, labels: { run: '42', team: 'qa' } }
  return { message: { id: messageId(1), inboxId, receivedAt, mail, bytes: 1_000 }, inbox }
}

const SIMPLE = [
  'From: App <app@example.com>',
  'To: someone@example.com',
  'Content-Type: text/plain; charset=utf-8',
  'Subject: Hello, (world)',
  'Message-ID: <abc.1@example.com>',
  'Bcc: Hidden <hidden@example.com>',
  '',
  'Please',
  ' \u00a0 con\u00adfirm <your> "address".',
  'In der Straße.',
  '',
].join('\r\n')

describe('a search', () => {
  let rich: Searchable
  let simple: Searchable

  beforeAll(() => {
    rich = message(richMail('jo@mayfly.test'))
    simple = message(SIMPLE)
  })

  async function foundBy(query: string, language: typeof MAILPIT): Promise<string> {
    const search = parseSearch(query, language)
    const found: string[] = []
    if (await matchesSearch(search, rich)) found.push('rich')
    if (await matchesSearch(search, simple)) found.push('simple')
    return found.join(' ')
  }

  it.each([
    // Filters.
    ['from:no-reply@app.example', 'rich'],
    ['FROM:ÄPP', 'rich'],
    ['from:"App <app@example.com>"', 'simple'],
    ['to:jo@mayfly.test', 'rich'],
    ['to:"Jo, the tester"', 'rich'],
    ['to:k3v9@mayfly.test', ''],
    ['cc:carbon', 'rich'],
    ['bcc:hidden@example.com', 'simple'],
    ['bcc:k3v9@mayfly.test', 'rich simple'],
    ['addressed:k3v9', 'rich simple'],
    ['reply-to:support@', 'rich'],
    ['subject:"Hello, (world)"', 'simple'],
    ['subject:493201', 'rich'],
    ['message-id:<abc.1@example.com>', 'simple'],
    ['message-id:abc', 'simple'],
    ['has:attachment', 'rich'],
    ['has:attachments', 'rich'],
    ['has:inline', 'rich'],
    ['larger:1kb', 'rich'],
    ['smaller:1K', 'simple'],
    ['smaller:0.5M', 'rich simple'],
    ['after:2026-03-01', 'rich simple'],
    ['after:2026-03-01T10:00:00.001Z', ''],
    ['after:"2026-03-01 11:00 +01:00"', 'rich simple'],
    ['before:2026-03-01', ''],
    ['before:2026-03-01T10:00', 'rich simple'],
    // Text.
    ['please confirm', 'simple'],
    ['"please confirm your address"', 'simple'],
    ['"confirm please"', ''],
    ['"PLEASE\u00a0confirm"', 'simple'],
    ['from:"A\u0308PP"', 'rich'],
    ['STRASSE', 'simple'],
    ['app@example.com', 'simple'],
    ['März.pdf', 'rich'],
    ['verify', 'rich'],
    ['https://nowhere.example', ''],
    ['has:nothing', ''],
    // Several terms, and negation.
    ['from:app subject:hello', 'simple'],
    ['from:app subject:code', 'rich'],
    ['from:app -subject:code', 'simple'],
    ['from:app !subject:code', 'simple'],
    ['-has:attachment', 'simple'],
    ['!"your code"', 'simple'],
    ['"-from:app@example.com"', 'rich'],
    ['  hello   please  ', 'simple'],
    ['subject:"hello', 'simple'],
  ])('for %s finds: %s', async (query, expected) => {
    expect(await foundBy(query, MAILPIT)).toBe(expected)
  })

  it.each([
    '',
    '   ',
    '""',
    'from:',
    'subject:""',
    'to:<>',
    '(),',
    '-()',
    'tag:one',
    '-TAG:one',
    'is:read',
    'is:unread',
    '!is:tagged',
    'after:yesterday',
    'after:2026-13-01',
    'before:2026-03-01T25:00',
    'larger:big',
    'smaller:1GB',
    'smaller:',
    'a '.repeat(21),
  ])('for %j is refused', (query) => {
    expect(() => parseSearch(query, MAILPIT)).toThrow(Problem)
    try {
      parseSearch(query, MAILPIT)
    } catch (error) {
      expect(error).toMatchObject({
        code: 'invalid-request',
        options: { errors: [{ parameter: 'query' }] },
      })
    }
  })

  it.each([
    ['to:k3v9@mayfly.test', 'rich simple'],
    ['text:please', 'simple'],
    ['text:hello', ''],
    ['from:app\tsubject:hello\u3000please', 'simple'],
    ['-text:please', 'rich'],
    ['has:code', 'rich'],
    ['has:link -has:code', ''],
    ['inbox:K3V9', 'rich simple'],
    [`inbox:${inboxIdIn(1)}`, 'rich simple'],
    ['inbox:other', ''],
    ['label:run:42 label:team', 'rich simple'],
    ['label:run:43', ''],
    ['-label:run:43', 'rich simple'],
    ['label:constructor', ''],
    ['from:app subject:hello', 'simple'],
    ['"https://nowhere.example"', ''],
    ['"from:app"', ''],
    ['-"from:app"', 'rich simple'],
    ['-"your code"', 'simple'],
    ['app@example.com', 'simple'],
  ])('as q for %s finds: %s', async (query, expected) => {
    expect(await foundBy(query, OWN)).toBe(expected)
  })

  it.each([
    'has:nothing',
    'form:app',
    'https://a.example',
    'is:read',
    'label:',
    'text:',
    'constructor:a',
    '__proto__:a',
    'has_code:x',
    'größe:1',
    'after:2026-02-30',
  ])('as q for %j is refused', (query) => {
    expect(() => parseSearch(query, OWN)).toThrow(Problem)
  })

  it('does not confuse words with names of the language', async () => {
    for (const language of [MAILPIT, OWN]) {
      for (const word of ['constructor', 'tostring', 'hasownproperty']) {
        expect([word, await matchesSearch(parseSearch(word, language), simple)]).toEqual([word, false])
      }
    }
  })

  it('treats signs of regular expressions and of SQL as text', async () => {
    for (const query of ['.*', '%', '_', 'h_llo', '[a-z]+', '$', "' OR 1=1", String.raw`\b`]) {
      expect([query, await matchesSearch(parseSearch(query, MAILPIT), message('\r\nHello'))]).toEqual([
        query,
        false,
      ])
    }
  })

  it('is parsed in linear time', () => {
    const started = performance.now()
    for (const part of ['"', '-', '!', ' "', '(', 'from:x ', '"a" ', ' ']) {
      try {
        parseSearch(part.repeat(100_000), OWN)
      } catch (error) {
        expect(error).toBeInstanceOf(Problem)
      }
    }
    expect(performance.now() - started).toBeLessThan(15_000)
  })

  it('finds text at any place of a long text, and lets other work run meanwhile', async () => {
    for (const at of [0, 65_500, 65_536, 600_000]) {
      const { message, inbox } = simple
      const text = `${'x'.repeat(at)} \r\n your  new\tcode ${'y '.repeat(300_000)}`
      let turns = 0
      const counting = setInterval(() => (turns += 1), 0)
      const long = { inbox, message: { ...message, mail: { ...message.mail, text } } }
      expect(await matchesSearch(parseSearch('"your new code"', MAILPIT), long)).toBe(true)
      expect(await matchesSearch(parseSearch('text:"your new code"', OWN), long)).toBe(true)
      expect(await matchesSearch(parseSearch('nowhere', MAILPIT), long)).toBe(false)
      clearInterval(counting)
      expect(turns).toBeGreaterThan(0)
    }
  })
})
