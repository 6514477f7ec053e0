import type { FastifyRequest } from 'fastify'
import { mintId } from '#libs/domain/ids/mint.js'
import { isId } from '#libs/domain/ids/typeid.js'
import { SealBrokenError } from '#libs/ports/key-vault/sealing.js'
import { Problem } from '../http/problems.js'
import { idempotencyKeyOf, openAnswer, sealAnswer } from './idempotency.js'
import { seededMinting } from './minting.js'

const read = (value: string, method = 'POST') =>
  idempotencyKeyOf({ method, headers: { 'idempotency-key': value } } as unknown as FastifyRequest)

describe('an Idempotency-Key', () => {
  it.each([
    { given: 'order-1', key: 'order-1' },
    { given: '"order-1"', key: 'order-1' },
    { given: '"with a blank"', key: 'with a blank' },
    { given: String.raw`"a\"b\\c"`, key: String.raw`a"b\c` },
    { given: '8e03978e-40d5-43e8-bc93-6894a57f9324', key: '8e03978e-40d5-43e8-bc93-6894a57f9324' },
    { given: 'a"b;c,d', key: 'a"b;c,d' },
    { given: 'x'.repeat(255), key: 'x'.repeat(255) },
    { given: `"${'x'.repeat(255)}"`, key: 'x'.repeat(255) },
  ])('$given is $key', ({ given, key }) => {
    expect(read(given)).toBe(key)
  })

  it.each([
    '',
    '""',
    '"',
    '"open',
    'with a blank',
    'one, another',
    '"a";q=1',
    String.raw`"a\b"`,
    'schön',
    'a\tb',
    'x'.repeat(256),
    `"${'x'.repeat(256)}"`,
  ])('is refused: %s', (given) => {
    expect(() => read(given)).toThrow(Problem)
  })

  it('is ignored unless the method is POST', () => {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PATCH']) expect(read('schön', method)).toBeNull()
    expect(idempotencyKeyOf({ method: 'POST', headers: {} } as FastifyRequest)).toBeNull()
  })
})

const answer = {
  status: 201,
  headers: { 'content-type': 'application/json', location: '/v1/inboxes/x' },
  size: 25,
  packed: Buffer.from('{"password":"line\nfeed"}\n\0\xff', 'latin1'),
}

describe('a stored answer', () => {
  it('is unchanged after it is sealed and opened', () => {
    expect(openAnswer(sealAnswer(answer, 'secret', 'id'), 'secret', 'id')).toEqual(answer)
  })

  it('can only be opened with its own secret and id', () => {
    const sealed = sealAnswer(answer, 'secret', 'id')
    expect(sealed.includes('password')).toBe(false)
    expect(() => openAnswer(sealed, 'another', 'id')).toThrow(SealBrokenError)
    expect(() => openAnswer(sealed, 'secret', 'another')).toThrow(SealBrokenError)
  })
})

const run = { seed: Buffer.alloc(32, 7), firstAtMs: Date.UTC(2026, 0, 1) }

const minted = (from = run, secret = 'secret') => {
  const minting = seededMinting(from, secret)
  const ids = Array.from({ length: 1_000 }, () => minting.id('inb'))
  return {
    ids,
    bytes: [minting.bytes(16), minting.bytes(20)].map((bytes) => Buffer.from(bytes).toString('hex')),
  }
}

describe('the ids and bytes of a request that may run again', () => {
  it('are the same in every run', () => {
    expect(minted()).toEqual(minted())
  })

  it('are unique, in the order in which they are made, with the time at which the request first arrived', () => {
    const { ids } = minted()
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.toSorted()).toEqual(ids)
    for (const id of ids) expect(isId('inb', id)).toBe(true)
    const later = minted({ ...run, firstAtMs: run.firstAtMs + 1 }).ids
    expect((later[0] ?? '') > (ids.at(-1) ?? '')).toBe(true)
    const atRandom = mintId('inb')
    const [now = ''] = minted({ ...run, firstAtMs: Date.now() + 5 }).ids
    expect(now > atRandom).toBe(true)
  })

  it('differ for another request, and the bytes also for another secret', () => {
    const [one, other] = [minted(), minted({ ...run, seed: Buffer.alloc(32, 8) })]
    expect(one.ids.filter((id) => other.ids.includes(id))).toEqual([])
    expect(new Set([...one.bytes, ...other.bytes, ...minted(run, 'another').bytes]).size).toBe(6)
    expect(minted(run, 'another').ids).toEqual(one.ids)
  })
})
