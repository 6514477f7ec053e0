import type { FastifyRequest } from 'fastify'
import { Problem } from '../http/problems.js'
import { idempotencyKeyOf } from './idempotency.js'

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

  it('is for POST alone', () => {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PATCH']) expect(read('schön', method)).toBeNull()
    expect(idempotencyKeyOf({ method: 'POST', headers: {} } as FastifyRequest)).toBeNull()
  })
})
