import { created, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import type { ParsedMail } from '../message.js'
import { messageJson, type OpenedMessage, messageBody } from './message-json.js'

const FAMILY = '/v1/inboxes'

function messageWith(facts: Partial<ParsedMail>): OpenedMessage {
  const lists = { from: [], to: [], cc: [], replyTo: [], links: [], codes: [], attachments: [], headers: [] }
  const envelope = { mailFrom: '', rcptTo: created.address, helo: '', remoteAddress: '127.0.0.1', tls: null }
  const nothing = {
    sender: '',
    recipient: created.address,
    date: null,
    text: null,
    html: null,
    htmlText: null,
  }
  const mail = { ...lists, ...nothing, subject: 'x', envelope, size: 1, sha256: '', warnings: [], ...facts }
  return { id: messageId(1), inboxId: created.inboxId, receivedAt: minute(1), mail, bytes: 1 }
}

/** Of so many bytes: the last one takes two. */
const long = (bytes: number) => `${'x'.repeat(bytes - 2)}é`
const manyHeaders = Array.from({ length: 200 }, (_, n) => ({ name: `X-${n}`, value: 'v'.repeat(1_500) }))

describe('the body of an event', () => {
  it('is a message as a list has it, with when it came', () => {
    const message = messageWith({ text: 'a\r\nb', html: '<p>' })
    expect(JSON.parse(messageBody(minute(1), message, FAMILY))).toEqual({
      type: 'message.received',
      timestamp: minute(1).toISOString(),
      data: messageJson(message, FAMILY),
    })
  })

  test.each<{ what: string; facts: Partial<ParsedMail>; truncated: string[] }>([
    { what: 'html', facts: { html: long(300_000), text: 'short' }, truncated: ['html'] },
    {
      what: 'html, though text is longer',
      facts: { html: long(60_000), text: long(210_000) },
      truncated: ['html'],
    },
    { what: 'text, where there is no html', facts: { text: long(300_000) }, truncated: ['text'] },
    {
      what: 'html and text',
      facts: { html: long(10_000), text: long(300_000) },
      truncated: ['html', 'text'],
    },
    {
      what: 'html, but with its visible text if that fits',
      facts: { html: long(300_000), htmlText: 'Your code is 493201' },
      truncated: ['html'],
    },
    {
      what: 'html and visible text',
      facts: { html: long(300_000), htmlText: long(200_000), text: long(100_000) },
      truncated: ['html', 'visible_text'],
    },
    {
      what: 'html, visible text, text and headers',
      facts: { html: 'x', htmlText: 'x', text: 'x', headers: manyHeaders },
      truncated: ['html', 'visible_text', 'text', 'headers'],
    },
  ])('is without $what if it would be too long', ({ facts, truncated }) => {
    const message = messageWith(facts)
    const body = messageBody(minute(1), message, FAMILY)
    const { data } = JSON.parse(body) as { data: Record<string, unknown> }
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(256_000)
    const nulls = Object.fromEntries(truncated.map((name) => [name, null]))
    expect(data).toEqual({ ...messageJson(message, FAMILY), ...nulls, truncated })
  })

  it('is as long as it may be without losing anything', () => {
    const room = 256_000 - Buffer.byteLength(messageBody(minute(1), messageWith({ text: '' }), FAMILY))
    for (const [bytes, isCut] of [
      [room, false],
      [room + 1, true],
    ] as const) {
      const body = messageBody(minute(1), messageWith({ text: long(bytes) }), FAMILY)
      expect(body.includes('"truncated"')).toBe(isCut)
    }
  })
})
