import { messageJson } from '#libs/mail/json/message-json.js'
import { parseMail } from '#libs/mail/parse.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { messageWithRaw } from './message-reader.js'

async function messageOf() {
  const mail = await parseMail(Buffer.from('Subject: One\r\n\r\nHello'), anyEnvelope)
  const [id, inboxId] = [mintId('msg'), mintId('inb')]
  return messageJson({ id, inboxId, receivedAt: new Date(), mail, bytes: 0 }, '/v1/inboxes')
}

describe('a message with its source', () => {
  it.each([
    { name: 'nothing', raw: Buffer.alloc(0), encoding: 'utf-8' },
    { name: 'a quotation mark and controls', raw: Buffer.from('"\\\0\r\n\u2028'), encoding: 'utf-8' },
    { name: 'characters of four bytes', raw: Buffer.from(`x${'👋'.repeat(250_000)}`), encoding: 'utf-8' },
    { name: 'characters of three bytes', raw: Buffer.from(`xx${'日'.repeat(400_000)}`), encoding: 'utf-8' },
    { name: 'bytes that are no UTF-8', raw: Buffer.alloc(1_000_001, 0xff), encoding: 'base64' },
  ] as const)('is one JSON value, whatever the source is: $name', async ({ raw, encoding }) => {
    const message = await messageOf()
    const written: unknown = JSON.parse((await messageWithRaw(message, raw)).toString())
    const text = raw.toString(encoding)
    // Compared by hand: a difference in a megabyte takes minutes to tell.
    expect((written as { raw: string }).raw === text).toBe(true)
    expect(written).toMatchObject({ ...JSON.parse(JSON.stringify(message)), raw_encoding: encoding })
  })
})
