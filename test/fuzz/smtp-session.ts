import fc from 'fast-check'

/** The actions of a client in one connection. Bytes are latin1; the names below are replaced by addresses. */
export interface FuzzSession {
  clear: string
  /** What follows STARTTLS: in the clear in the same packet, then over TLS. Null without STARTTLS. */
  tls: { injected: string; secure: string } | null
  /** Positions at which the bytes are split into packets, in thousandths of their length. */
  cuts: number[]
  /** Whether the server gets a turn of the event loop between packets. */
  isSlow: boolean
  /** How the client disconnects: after the last reply, or in the middle. */
  leaves: 'after-replies' | 'resets' | 'ends'
}

/** Two inboxes of the session, and one that is full after two mails. */
export const NAMES = ['ONE', 'TWO', 'SMALL'] as const

const often = <Value>(weight: number, arbitrary: fc.Arbitrary<Value>) => ({ weight, arbitrary })

const lineEnd = fc.oneof(
  often(30, fc.constant('\r\n')),
  often(1, fc.constantFrom('\n', '\r', '\r\r\n', '\n\r\n', '', '\0\r\n')),
)

const noise = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })

const path = fc.oneof(
  often(8, fc.constantFrom(...NAMES.map((name) => `<${name}>`))),
  often(2, fc.constantFrom('<>', '<a@x.test>', '<nobody@mayfly.test>', '<00000000000000000000@mayfly.test>')),
  often(
    2,
    fc.constantFrom('<"a>b"@x.test>', '<@r.test:ONE>', '<Postmaster>', '<a@[127.0.0.1]>', '<a@[IPv6:::1]>'),
  ),
  often(
    1,
    noise.map((text) => `<${text}>`),
  ),
  often(
    1,
    fc.integer({ min: 200, max: 3_000 }).map((length) => `<${'a'.repeat(length)}@x.test>`),
  ),
)

const parameter = fc.constantFrom(
  '',
  '',
  '',
  ' SIZE=100',
  ' SIZE=30000',
  ' SIZE=x',
  ' BODY=8BITMIME',
  ' SMTPUTF8',
  ' NOTIFY=NEVER',
  ' RET=FULL ENVID=1',
  ' =',
  '  ',
)

const command = fc.oneof(
  often(
    2,
    fc.constantFrom('EHLO client.test', 'HELO client.test', 'EHLO [::1]', 'EHLO \xfc', 'EHLO', 'HELO a b'),
  ),
  often(
    4,
    fc.tuple(path, parameter).map(([to, more]) => `MAIL FROM:${to}${more}`),
  ),
  often(
    6,
    fc.tuple(path, parameter).map(([to, more]) => `RCPT TO:${to}${more}`),
  ),
  often(4, fc.constant('DATA')),
  often(2, fc.constantFrom('RSET', 'NOOP', 'VRFY a', 'EXPN a', 'HELP', 'AUTH PLAIN AGEAYg==', 'BDAT 3 LAST')),
  often(2, fc.constantFrom('AUTH PLAIN', 'AUTH LOGIN', 'AUTH XOAUTH2', 'YQ==', 'AGEAYg==', '*')),
  often(
    1,
    fc.integer({ min: 12_270, max: 12_310 }).map((length) => 'AUTH PLAIN '.padEnd(length, 'A')),
  ),
  often(1, fc.constantFrom('QUIT', 'XCLIENT NAME=x', 'GET / HTTP/1.1', 'PROXY TCP4 1.1.1.1 2.2.2.2 1 2', '')),
  often(1, noise),
  often(
    1,
    fc.integer({ min: 2_030, max: 2_070 }).map((length) => 'NOOP '.padEnd(length, 'x')),
  ),
)

/** Changes, removes or inserts one byte. */
const mangled = (texts: fc.Arbitrary<string>) =>
  fc.tuple(texts, fc.nat(1_000), fc.nat(255), fc.constantFrom(0, 1)).map(([text, place, code, removed]) => {
    const at = Math.floor((text.length * place) / 1_000)
    return text.slice(0, at) + String.fromCharCode(code) + text.slice(at + removed)
  })

const line = fc
  .tuple(fc.oneof(often(12, command), often(1, mangled(command))), lineEnd)
  .map(([text, end]) => text + end)

const content = fc
  .array(
    fc.oneof(
      often(8, fc.constantFrom('\r\n', '.', '..', 'a', 'Subject: x\r\n\r\n', '\r\n.', '\x00', '\xff')),
      often(2, line),
      often(1, fc.constantFrom('\r', '\n', '\r\n.\n', '\n.\r\n', '\r.\r', '\r\n.\r')),
      often(
        1,
        fc.nat(30_000).map((length) => 'x'.repeat(length)),
      ),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(''))

const mailEnd = fc.oneof(often(8, fc.constant('\r\n.\r\n')), often(1, fc.constantFrom('.\r\n', '\n.\n', '')))

const mail = fc
  .tuple(fc.constantFrom(...NAMES), fc.array(line, { maxLength: 2 }), content, mailEnd)
  .map(([name, between, text, end]) => {
    return `MAIL FROM:<a@x.test>\r\nRCPT TO:<${name}>\r\n${between.join('')}DATA\r\n${text}${end}`
  })

const commands = fc
  .tuple(fc.constantFrom('EHLO client.test\r\n', ''), fc.array(fc.oneof(line, mail), { maxLength: 12 }))
  .map(([hello, pieces]) => hello + pieces.join(''))

export const session: fc.Arbitrary<FuzzSession> = fc.record({
  clear: commands,
  tls: fc.option(fc.record({ injected: fc.oneof(fc.constant(''), commands), secure: commands }), { freq: 3 }),
  cuts: fc.array(fc.nat(1_000), { maxLength: 8 }),
  isSlow: fc.boolean(),
  leaves: fc.oneof(
    often(6, fc.constant('after-replies' as const)),
    often(1, fc.constantFrom('resets' as const, 'ends' as const)),
  ),
})
