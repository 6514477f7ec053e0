import { bodyContext, sealJson, makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import {
  created,
  INBOX_ID,
  MESSAGE_ID,
  minute,
  received,
  replay,
} from '#libs/domain/inbox/inbox.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Notification } from '#libs/domain/webhook/events.js'
import { EXAMPLE_MAIL } from '#libs/mail/message.js'
import { NotificationBodies } from './notification-body.js'

const ids = { inboxId: INBOX_ID, messageId: MESSAGE_ID }
const MAIL = {
  ...EXAMPLE_MAIL,
  ...{ subject: 'Your code', sender: 'app@example.com', recipient: created.address },
  envelope: {
    ...{ mailFrom: 'app@example.com', rcptTo: created.address, helo: 'mail.example.com' },
    ...{ remoteAddress: '192.0.2.1', tls: null },
  },
  from: [{ name: 'App', address: 'app@example.com' }],
  to: [{ name: null, address: created.address }],
  ...{ cc: [], replyTo: [], links: [], codes: [], attachments: [], headers: [], warnings: [] },
  ...{ date: null, text: 'It is é 481516.', html: null, htmlText: null, size: 80, sha256: '0'.repeat(64) },
}

function delivery(webhook: number, notification: Notification): Delivery {
  return {
    id: idFromBytes('dlv', Buffer.alloc(16, webhook)),
    webhookId: idFromBytes('whk', Buffer.alloc(16, webhook)),
    accountId: idFromBytes('acc', Buffer.alloc(16, 1)),
    environment: 'staging',
    notification,
    replayId: null,
    requestedAt: minute(1),
    state: 'pending',
    attempts: [],
    dueAt: minute(1),
    abandonedFor: null,
  }
}

/** Compared byte for byte, because receivers verify a signature over the bytes. */
const EXPECTED = [
  '{"type":"message.received","timestamp":"2026-01-01T00:01:00.000Z",',
  `"data":{"id":"${MESSAGE_ID}","inbox_id":"${INBOX_ID}","received_at":"2026-01-01T00:01:00.000Z",`,
  `"subject":"Your code","sender":"app@example.com","recipient":"${created.address}",`,
  '"recipient_detail":null,',
  `"from":[{"name":"App","address":"app@example.com"}],"to":[{"name":null,"address":"${created.address}"}],`,
  '"cc":[],"reply_to":[],"date":null,"text":"It is é 481516.","html":null,"visible_text":null,',
  '"links":[],"codes":[],"attachments":[],"headers":[],',
  `"envelope":{"mail_from":"app@example.com","rcpt_to":"${created.address}","helo":"mail.example.com",`,
  '"remote_address":"192.0.2.1","tls":null},"authentication":{"spf":null,"dkim":[],"dmarc":null},',
  `"size":80,"sha256":"${'0'.repeat(64)}",`,
  `"raw_url":"/v1/inboxes/${INBOX_ID}/messages/${MESSAGE_ID}/raw","warnings":[]}}`,
].join('')

describe('the body of a delivery', () => {
  const history = replay([created, received(minute(1))])
  let bodyReads: number
  let bodies: NotificationBodies

  beforeEach(() => {
    bodyReads = 0
    const key = makeSecretKey()
    const sealed = sealJson(key, bodyContext(INBOX_ID, MESSAGE_ID), MAIL)
    const { inbox } = history
    const message = history.messages.get(MESSAGE_ID)
    bodies = new NotificationBodies({
      inboxes: {
        inbox: () => Promise.resolve(inbox === null ? null : { inbox, endOffset: 2 }),
        message: () => Promise.resolve(message === undefined ? null : { message, offset: 1 }),
        sealedParts() {
          bodyReads += 1
          return Promise.resolve({ body: sealed, raw: null })
        },
      },
      vault: { find: () => Promise.resolve({ state: 'known', key }) },
      now: () => minute(2),
      memoryScale: 1,
      onExhausted: () => undefined,
    })
  })

  async function written(wanted: Delivery): Promise<string> {
    const body = await bodies.write(wanted)
    if ('gone' in body) throw new Error(body.gone)
    body.release()
    return body.json.toString()
  }

  const receivedAt = (occurredAt: Date) => ({ type: 'message.received', ...ids, occurredAt }) as const

  it('of a mail is written once for all webhooks, concurrent or later', async () => {
    const write = (webhook: number) => written(delivery(webhook, receivedAt(minute(1))))
    const texts = await Promise.all([write(1), write(2), write(3)])
    texts.push(await write(4))
    expect(bodyReads).toBe(1)
    expect(texts).toEqual(Array(4).fill(EXPECTED))
  })

  it('of another event is written separately', async () => {
    const [first, second] = [minute(1), minute(1.5)]
    await bodies.write(delivery(1, receivedAt(first)))
    const other = await written(delivery(1, receivedAt(second)))
    expect(bodyReads).toBe(2)
    // The first timestamp in the body is that of the event, the second that of the mail.
    expect(other).toBe(EXPECTED.replace(first.toISOString(), second.toISOString()))
  })

  test.each<{ notification: Notification; text: string }>([
    {
      notification: { type: 'inbox.deleted', inboxId: INBOX_ID, messageId: null, occurredAt: minute(1) },
      text: `{"type":"inbox.deleted","timestamp":"2026-01-01T00:01:00.000Z","data":{"id":"${INBOX_ID}","state":"deleted","ended_at":"2026-01-01T00:01:00.000Z"}}`,
    },
    {
      notification: { type: 'message.deleted', ...ids, occurredAt: minute(1) },
      text: `{"type":"message.deleted","timestamp":"2026-01-01T00:01:00.000Z","data":{"id":"${MESSAGE_ID}","inbox_id":"${INBOX_ID}","deleted_at":"2026-01-01T00:01:00.000Z"}}`,
    },
  ])(
    'of $notification.type has ids and a time, and does not read the mail',
    async ({ notification, text }) => {
      expect(await written(delivery(1, notification))).toBe(text)
      expect(bodyReads).toBe(0)
    },
  )
})
