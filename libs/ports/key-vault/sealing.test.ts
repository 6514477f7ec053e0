import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { mintId } from '#libs/domain/ids/mint.js'
import type { Envelope } from '#libs/mail/message.js'
import {
  bodyContext,
  makeSecretKey,
  packSource,
  seal,
  SEAL_OVERHEAD_BYTES,
  SealBrokenError,
  sealJson,
  sealMail,
  secretKey,
  unseal,
  unsealJson,
  unsealMail,
} from './sealing.js'

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

const anyBytes = fc.uint8Array({ maxLength: 500 })
const anyKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => secretKey(Buffer.from(bytes)))

describe('sealed bytes', () => {
  it('are opened with the same key and context', () => {
    fc.assert(
      fc.property(anyKey, fc.string(), anyBytes, (key, context, plaintext) => {
        const sealed = seal(key, context, plaintext)
        expect(sealed).toHaveLength(plaintext.length + SEAL_OVERHEAD_BYTES)
        expect(unseal(key, context, sealed)).toEqual(Buffer.from(plaintext))
      }),
    )
  })

  it('can’t be opened with another key', () => {
    fc.assert(
      fc.property(anyKey, anyKey, anyBytes, (key, other, plaintext) => {
        fc.pre(!key.equals(other))
        expect(() => unseal(other, 'mail', seal(key, 'mail', plaintext))).toThrow(SealBrokenError)
      }),
    )
  })

  it('can’t be opened in another context', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), anyBytes, (context, other, plaintext) => {
        fc.pre(context !== other)
        const key = makeSecretKey()
        expect(() => unseal(key, other, seal(key, context, plaintext))).toThrow(SealBrokenError)
      }),
    )
  })

  it('can’t be opened if a bit was changed or the end was cut off', () => {
    fc.assert(
      fc.property(anyBytes, fc.nat(), fc.integer({ min: 0, max: 7 }), (plaintext, at, bit) => {
        const key = makeSecretKey()
        const sealed = seal(key, 'mail', plaintext)
        const index = at % sealed.length
        const changed = Buffer.from(sealed)
        changed.writeUInt8(changed.readUInt8(index) ^ (1 << bit), index)
        expect(() => unseal(key, 'mail', changed)).toThrow(SealBrokenError)
        expect(() => unseal(key, 'mail', sealed.subarray(0, index))).toThrow(SealBrokenError)
      }),
    )
  })

  it('are never the same twice: no nonce is repeated', () => {
    const key = makeSecretKey()
    const nonces = Array.from({ length: 2_000 }, () =>
      seal(key, 'mail', Buffer.alloc(0)).toString('hex', 1, 13),
    )
    expect(new Set(nonces).size).toBe(nonces.length)
  })

  it('require a key of exactly 32 bytes', () => {
    expect(() => secretKey(Buffer.alloc(31))).toThrow(RangeError)
    expect(() => secretKey(Buffer.alloc(33))).toThrow(RangeError)
  })
})
