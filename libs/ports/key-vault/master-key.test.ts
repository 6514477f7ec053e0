import { brand } from '#libs/domain/ids/typeid.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { makeSecretKey, SealBrokenError } from './sealing.js'
import { MasterKeyMissingError, MasterKeys } from './master-key.js'

const [one, two, three] = Array.from({ length: 3 }, () => makeSecretKey().toString('base64'))

function parse(text = ''): MasterKeys {
  const keys = MasterKeys.parse(text)
  if (keys === null) throw new Error(`no master keys: ${text}`)
  return keys
}

describe('a master key', () => {
  test.each([
    { what: 'one key', text: `${one}` },
    { what: 'one key without padding', text: `${one?.replace('=', '')}` },
    { what: 'one key with white space around it', text: ` ${one}\n` },
    { what: 'several, separated by commas', text: `${one},${two},${three}` },
    { what: 'several, separated by commas and spaces', text: `${one}, ${two}` },
  ])('is read from $what', ({ text }) => {
    expect(MasterKeys.parse(text)).toBeInstanceOf(MasterKeys)
  })

  test.each([
    { what: 'nothing', text: '' },
    { what: 'a trailing comma', text: `${one},` },
    { what: 'a leading comma', text: `,${one}` },
    { what: 'two keys with a space between', text: `${one} ${two}` },
    { what: 'two keys with a semicolon between', text: `${one};${two}` },
    { what: 'characters that are not base64', text: `!!${one}` },
    {
      what: 'a sentence with as many letters as a key',
      text: 'the quick brown fox jumps over the lazy dog, and the dog',
    },
    { what: '31 bytes', text: Buffer.alloc(31, 1).toString('base64') },
    { what: '33 bytes', text: Buffer.alloc(33, 1).toString('base64') },
    { what: '32 bytes in hex', text: Buffer.alloc(32, 1).toString('hex') },
    { what: 'an invalid key after a valid one', text: `${one},broken` },
  ])('is invalid: $what', ({ text }) => {
    expect(MasterKeys.parse(text)).toBeNull()
  })
})

describe('a wrapped key', () => {
  const inboxId = mintId('inb')
  const key = makeSecretKey()

  it('is unwrapped with the key that wrapped it, current or retired', () => {
    const wrapped = parse(one).wrap(inboxId, key)
    expect(parse(one).unwrap(inboxId, wrapped)).toEqual(key)
    expect(parse(`${two},${one}`).unwrap(inboxId, wrapped)).toEqual(key)
  })

  it('is wrapped with the first of several master keys', () => {
    const wrapped = parse(`${two},${one}`).wrap(inboxId, key)
    expect(parse(two).unwrap(inboxId, wrapped)).toEqual(key)
    expect(() => parse(one).unwrap(inboxId, wrapped)).toThrow(MasterKeyMissingError)
  })

  it('can’t be unwrapped for another inbox', () => {
    const wrapped = parse(one).wrap(inboxId, key)
    expect(() => parse(one).unwrap(mintId('inb'), wrapped)).toThrow(SealBrokenError)
  })

  it('reveals nothing of the key, and its id nothing of the master key', () => {
    const { wrapped, masterKeyId } = parse(one).wrap(inboxId, key)
    expect(Buffer.from(wrapped).includes(key)).toBe(false)
    expect(masterKeyId).toMatch(/^[0-9a-f]{16}$/)
    expect(Buffer.from(one ?? '', 'base64').toString('hex')).not.toContain(masterKeyId)
  })
})

describe('the secret of a webhook', () => {
  const webhookId = mintId('whk')
  const secret = Buffer.alloc(32, 7)

  it('is opened with the master key that sealed it, current or retired, and no other', () => {
    const sealed = parse(one).sealSecret(webhookId, secret)
    expect(parse(`${two},${one}`).openSecret(webhookId, sealed)).toEqual(secret)
    expect(() => parse(two).openSecret(webhookId, sealed)).toThrow(MasterKeyMissingError)
    expect(Buffer.from(sealed.sealed).includes(secret)).toBe(false)
  })

  it('is sealed with the first of several master keys', () => {
    const sealed = parse(`${two},${one}`).sealSecret(webhookId, secret)
    expect(parse(two).openSecret(webhookId, sealed)).toEqual(secret)
  })

  it('can’t be opened for another webhook, or as an inbox key or URL', () => {
    const { masterKeyId, sealed } = parse(one).sealSecret(webhookId, secret)
    expect(() => parse(one).openSecret(mintId('whk'), { masterKeyId, sealed })).toThrow(SealBrokenError)
    expect(() => parse(one).openUrl(webhookId, { masterKeyId, sealed })).toThrow(SealBrokenError)
    const asKey = { masterKeyId, wrapped: sealed }
    expect(() => parse(one).unwrap(mintId('inb'), asKey)).toThrow(SealBrokenError)
  })
})

describe('the URL of a webhook that an earlier version sealed', () => {
  const webhookId = brand('whk', 'whk_01jd6b2k8nf3gq6r9t2w5y8z1c')
  const its = Buffer.alloc(32, 1).toString('base64')
  const sealed = {
    masterKeyId: '76c05bb85f5b7373',
    sealed: Buffer.from(
      'AWmduEViKFpMJdZ9wiYNmC+K5MMK7teAW8fV1hnfcfNhdquoxYQsKX9GzzjQX09vTzT7NRdOZNjasQE3WLXF',
      'base64',
    ),
  }

  it('is opened with the master key that sealed it, current or retired, and no other', () => {
    expect(parse(`${two},${its}`).openUrl(webhookId, sealed)).toBe('https://ci.example/ä?token=secret')
    expect(() => parse(two).openUrl(webhookId, sealed)).toThrow(MasterKeyMissingError)
  })

  it('can’t be opened for another webhook, or as a secret', () => {
    expect(() => parse(its).openUrl(mintId('whk'), sealed)).toThrow(SealBrokenError)
    expect(() => parse(its).openSecret(webhookId, sealed)).toThrow(SealBrokenError)
  })
})

describe('a derived key', () => {
  it('is the same for the same purpose and current master key only', () => {
    const key = parse(one).deriveKey('tokens')
    expect(parse(`${one},${two}`).deriveKey('tokens')).toEqual(key)
    expect(parse(one).deriveKey('tickets')).not.toEqual(key)
    expect(parse(`${two},${one}`).deriveKey('tokens')).not.toEqual(key)
  })
})
