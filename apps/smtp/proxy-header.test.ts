import fc from 'fast-check'
import { readProxyHeader } from './proxy-header.js'

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
const IPV6_SOURCE = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
const IPV6_DESTINATION = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]
const MAPPED_IPV4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]
const TCP4 = [192, 0, 2, 1, 198, 51, 100, 7, 0xdc, 0x04, 0x00, 0x19]

function v2(command: number, family: number, body: readonly number[]): Buffer {
  return Buffer.from([...SIGNATURE, command, family, body.length >> 8, body.length & 0xff, ...body])
}

const WHOLE = [
  {
    name: 'TCP4 of version 1',
    bytes: Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.7 56324 25\r\n'),
    source: { address: '192.0.2.1' },
  },
  {
    name: 'TCP6 of version 1 with the maximum length',
    bytes: Buffer.from(`PROXY TCP6 ${'ffff:'.repeat(7)}ffff ${'ffff:'.repeat(7)}ffff 65535 65535\r\n`),
    source: { address: `${'ffff:'.repeat(7)}ffff` },
  },
  { name: 'UNKNOWN of version 1', bytes: Buffer.from('PROXY UNKNOWN\r\n'), source: null },
  { name: 'UNKNOWN with addresses', bytes: Buffer.from('PROXY UNKNOWN ff::1 ff::2 1 2\r\n'), source: null },
  { name: 'TCP4 of version 2', bytes: v2(0x21, 0x11, TCP4), source: { address: '192.0.2.1' } },
  {
    name: 'TCP6 of version 2',
    bytes: v2(0x21, 0x21, [...IPV6_SOURCE, ...IPV6_DESTINATION, 0x00, 0x50, 0x00, 0x19]),
    source: { address: '2001:db8::1' },
  },
  {
    name: 'TCP4 of version 2 with a type-length-value',
    bytes: v2(0x21, 0x11, [...TCP4, 0x04, 0x00, 0x02, 0xaa, 0xbb]),
    source: { address: '192.0.2.1' },
  },
  {
    name: 'IPv4 mapped to IPv6 of version 1',
    bytes: Buffer.from('PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.7 56324 25\r\n'),
    source: { address: '192.0.2.1' },
  },
  {
    name: 'IPv4 mapped to IPv6 of version 1, in another form',
    bytes: Buffer.from('PROXY TCP6 0:0:0:0:0:FFFF:C000:0201 ::1 56324 25\r\n'),
    source: { address: '192.0.2.1' },
  },
  {
    name: 'IPv4 mapped to IPv6 of version 2',
    bytes: v2(0x21, 0x21, [...MAPPED_IPV4, ...IPV6_DESTINATION, 0xdc, 0x04, 0x00, 0x19]),
    source: { address: '192.0.2.1' },
  },
  { name: 'LOCAL', bytes: v2(0x20, 0x00, []), source: null },
  { name: 'LOCAL with an ignored family', bytes: v2(0x20, 0xff, [1, 2, 3]), source: null },
  { name: 'UNSPEC', bytes: v2(0x21, 0x00, []), source: null },
  { name: 'UNIX stream', bytes: v2(0x21, 0x31, Array<number>(216).fill(0x2f)), source: null },
]

const MALFORMED = [
  { name: 'SMTP', bytes: Buffer.from('EHLO client.test\r\n') },
  { name: 'one other byte', bytes: Buffer.from('X') },
  { name: 'lower case', bytes: Buffer.from('proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n') },
  { name: 'a bare LF', bytes: Buffer.from(`PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n${' '.repeat(80)}`) },
  { name: 'addresses of the other family', bytes: Buffer.from('PROXY TCP4 ::1 ::2 1 2\r\n') },
  { name: 'UDP', bytes: Buffer.from('PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n') },
  { name: 'a port above 65535', bytes: Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n') },
  { name: 'a port with a sign', bytes: Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n') },
  { name: 'an address with a NUL', bytes: Buffer.from('PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n') },
  { name: 'too few words', bytes: Buffer.from('PROXY TCP4 192.0.2.1\r\n') },
  { name: 'too many words', bytes: Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n') },
  { name: 'two spaces', bytes: Buffer.from('PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n') },
  { name: '107 bytes without CRLF', bytes: Buffer.from(`PROXY UNKNOWN ${'x'.repeat(93)}`) },
  { name: 'version 1 in the header of version 2', bytes: v2(0x11, 0x11, TCP4) },
  { name: 'an unknown command', bytes: v2(0x22, 0x11, TCP4) },
  { name: 'an unknown family', bytes: v2(0x21, 0x41, TCP4) },
  { name: 'an unknown protocol', bytes: v2(0x21, 0x13, TCP4) },
  { name: 'an address that is too short', bytes: v2(0x21, 0x11, TCP4.slice(1)) },
  { name: 'an IPv6 address that is too short', bytes: v2(0x21, 0x21, TCP4) },
  { name: 'a header that is too long', bytes: v2(0x21, 0x11, [...TCP4, ...Array<number>(2_100).fill(0)]) },
]

describe('the PROXY protocol', () => {
  it.each(WHOLE)('reads $name, and not the bytes after it', ({ bytes, source }) => {
    const header = readProxyHeader(Buffer.concat([bytes, Buffer.from('EHLO x\r\n')]))
    expect(header).toEqual({ state: 'complete', bytes: bytes.length, source })
  })

  it.each(WHOLE)('waits for all of $name', ({ bytes }) => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readProxyHeader(bytes.subarray(0, length))).toEqual({ state: 'partial' })
    }
  })

  it.each(MALFORMED)('refuses $name', ({ bytes }) => {
    expect(readProxyHeader(bytes)).toEqual({ state: 'malformed' })
  })

  it('never waits for more bytes than a header can have', () => {
    const start = fc.constantFrom(Buffer.from('PROXY '), Buffer.from(SIGNATURE), Buffer.alloc(0))
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 300 }), (head, tail) => {
        const bytes = Buffer.concat([head, tail])
        const header = readProxyHeader(bytes)
        if (header.state === 'complete') expect(header.bytes).toBeLessThanOrEqual(bytes.length)
        const padded = readProxyHeader(Buffer.concat([bytes, Buffer.alloc(2_100)]))
        expect(padded.state).not.toBe('partial')
      }),
    )
  })
})
