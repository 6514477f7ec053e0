import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { mintId } from '#libs/domain/ids/mint.js'
import type { Envelope } from '#libs/mail/message.js'
import {
  bodyContext,
  makeSecretKey,
  packSource,
  SealBrokenError,
  sealJson,
  sealMail,
  unsealJson,
  unsealMail,
} from './content.js'

const anyEnvelope: fc.Arbitrary<Envelope> = fc.record({
  mailFrom: fc.string({ unit: 'binary' }),
  rcptTo: fc.string(),
  helo: fc.string(),
  remoteAddress: fc.ipV6(),
  tls: fc.option(fc.record({ version: fc.string(), cipher: fc.string() })),
})

const envelope: Envelope = {
  mailFrom: '',
  rcptTo: 'a@mayfly.test',
  helo: 'x',
  remoteAddress: '::1',
  tls: null,
}
const key = makeSecretKey()
const [inboxId, messageId] = [mintId('inb'), mintId('msg')]

describe('a sealed mail', () => {
  it('is unsealed with its envelope, byte for byte', async () => {
    await fc.assert(
      fc.asyncProperty(anyEnvelope, fc.uint8Array({ maxLength: 2_000 }), async (trace, bytes) => {
        const raw = Buffer.from(bytes)
        const sealed = sealMail(key, inboxId, messageId, trace, await packSource(raw))
        expect(await unsealMail(key, inboxId, messageId, sealed)).toEqual({ envelope: trace, raw })
      }),
    )
  })

  test.each([
    { what: 'nothing', raw: Buffer.alloc(0) },
    { what: 'one byte', raw: Buffer.from([0]) },
    { what: 'just under 128 KB', raw: randomBytes(128 * 1024 - 1) },
    { what: '128 KB', raw: randomBytes(128 * 1024) },
    { what: '1 MB that compresses to nearly nothing', raw: Buffer.alloc(1 << 20, 'mail ') },
    { what: '3 MB that do not compress', raw: randomBytes(3 << 20) },
  ])('holds $what', async ({ raw }) => {
    const packed = await packSource(raw)
    expect(packed.size).toBe(raw.length)
    const content = await unsealMail(
      key,
      inboxId,
      messageId,
      sealMail(key, inboxId, messageId, envelope, packed),
    )
    expect(content.raw.equals(raw)).toBe(true)
    expect(content.envelope).toEqual(envelope)
  })

  it('can’t be opened for another message or inbox, or with another key', async () => {
    const sealed = sealMail(key, inboxId, messageId, envelope, await packSource(Buffer.from('mail')))
    const broken = [
      unsealMail(key, inboxId, mintId('msg'), sealed),
      unsealMail(key, mintId('inb'), messageId, sealed),
      unsealMail(makeSecretKey(), inboxId, messageId, sealed),
    ]
    for (const opening of broken) await expect(opening).rejects.toThrow(SealBrokenError)
  })

  it('reveals nothing of the mail', async () => {
    const raw = Buffer.from('Subject: Your code is 493201\r\n\r\n')
    const sealed = sealMail(
      key,
      inboxId,
      messageId,
      { ...envelope, helo: 'client.example' },
      await packSource(raw),
    )
    expect(sealed.includes('493201')).toBe(false)
    expect(sealed.includes('client.example')).toBe(false)
  })
})

describe('sealed JSON', () => {
  it('is unsealed unchanged, in its own context only', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const context = bodyContext(inboxId, messageId)
        const sealed = sealJson(key, context, value)
        expect(unsealJson(key, context, sealed)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(() => unsealJson(key, bodyContext(inboxId, mintId('msg')), sealed)).toThrow(SealBrokenError)
      }),
    )
  })
})
