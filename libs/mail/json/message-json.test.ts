import { created, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { EXAMPLE_MAIL, type ParsedMail } from '../message.js'
import { messageBody, messageJson, type OpenedMessage } from './message-json.js'

const BASE_PATH = '/v1/inboxes'

function messageWith(properties: Partial<ParsedMail>): OpenedMessage {
  const envelope = { ...EXAMPLE_MAIL.envelope, rcptTo: created.address }
  const mail = { ...EXAMPLE_MAIL, recipient: created.address, envelope, text: null, ...properties }
  return { id: messageId(1), inboxId: created.inboxId, receivedAt: minute(1), mail, bytes: 1 }
}

/** A text of `bytes` bytes; the last character has two. */
const long = (bytes: number) => `${'x'.repeat(bytes - 2)}é`
const manyHeaders = Array.from({ length: 200 }, (_, n) => ({ name: `X-${n}`, value: 'v'.repeat(1_500) }))

describe('the body of an event', () => {
  it('is the message of the API, with its time', () => {
    const message = messageWith({ text: 'a\r\nb', html: '<p>' })
    expect(JSON.parse(messageBody(minute(1), message, BASE_PATH))).toEqual({
      type: 'message.received',
      timestamp: minute(1).toISOString(),
      data: messageJson(message, BASE_PATH),
    })
  })

  test.each<{ what: string; properties: Partial<ParsedMail>; truncated: string[] }>([
    { what: 'html', properties: { html: long(300_000), text: 'short' }, truncated: ['html'] },
    {
      what: 'html, though text is longer',
      properties: { html: long(60_000), text: long(210_000) },
      truncated: ['html'],
    },
    { what: 'text, if there is no html', properties: { text: long(300_000) }, truncated: ['text'] },
    {
      what: 'html and text',
      properties: { html: long(10_000), text: long(300_000) },
      truncated: ['html', 'text'],
    },
    {
      what: 'html, but with its visible text if that fits',
      properties: { html: long(300_000), htmlText: 'Your code is 493201' },
      truncated: ['html'],
    },
    {
      what: 'html and visible text',
      properties: { html: long(300_000), htmlText: long(200_000), text: long(100_000) },
      truncated: ['html', 'visible_text'],
    },
    {
      what: 'html, visible text, text and headers',
      properties: { html: 'x', htmlText: 'x', text: 'x', headers: manyHeaders },
      truncated: ['html', 'visible_text', 'text', 'headers'],
    },
  ])('is without $what if it would be too long', ({ properties, truncated }) => {
    const message = messageWith(properties)
    const body = messageBody(minute(1), message, BASE_PATH)
    const { data } = JSON.parse(body) as { data: Record<string, unknown> }
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(256_000)
    const nulls = Object.fromEntries(truncated.map((name) => [name, null]))
    expect(data).toEqual({ ...messageJson(message, BASE_PATH), ...nulls, truncated })
  })

  it('is complete up to the limit', () => {
    const maxTextBytes =
      256_000 - Buffer.byteLength(messageBody(minute(1), messageWith({ text: '' }), BASE_PATH))
    for (const [bytes, isCut] of [
      [maxTextBytes, false],
      [maxTextBytes + 1, true],
    ] as const) {
      const body = messageBody(minute(1), messageWith({ text: long(bytes) }), BASE_PATH)
      expect(body.includes('"truncated"')).toBe(isCut)
    }
  })
})
