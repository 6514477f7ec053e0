import { createHash } from 'node:crypto'
import { call, createInbox, messagesOf, only, type MessageJson } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { sendBytes } from '#test/harness/smtp.js'

const HEAD = 'Subject: source\r\n\r\n'
const END = '.\r\n'

/** `sent` and `END` are sent unchanged after DATA; `kept` is the expected source. */
const SOURCES: { name: string; sent: Buffer; kept: Buffer; encoding: 'utf-8' | 'base64' }[] = [
  same('ASCII', HEAD + 'Hello.\r\n', 'utf-8'),
  same('UTF-8', HEAD + 'Grüße, 日本, 👋\r\n', 'utf-8'),
  same('UTF-8 in headers', 'Subject: Grüße\r\n\r\n\r\n', 'utf-8'),
  same('a byte order mark', `\ufeff${HEAD}\r\n`, 'utf-8'),
  same('a NUL', `${HEAD}a\0b\r\n`, 'utf-8'),
  same('every byte but CR and LF', Buffer.concat([bytes(HEAD), allBytes(), bytes('\r\n')]), 'base64'),
  same('Latin-1', Buffer.from(`${HEAD}Grüße\r\n`, 'latin1'), 'base64'),
  same(
    'half a UTF-8 character',
    Buffer.concat([bytes(HEAD), Buffer.from([0xe6, 0x97]), bytes('\r\n')]),
    'base64',
  ),
  same('blanks at line ends', `${HEAD}a  \r\n\t\r\n  \r\n\r\n\r\n`, 'utf-8'),
  same('one long line', `${HEAD}${'x'.repeat(100_000)}\r\n`, 'utf-8'),
  same('no header', '\r\nbody\r\n', 'utf-8'),
  same('headers alone', 'Subject: source\r\n', 'utf-8'),
  same('nothing', '', 'utf-8'),
  {
    name: 'lines of dots',
    sent: bytes(`${HEAD}..\r\n...\r\n..a\r\na.\r\n.. \r\n`),
    kept: bytes(`${HEAD}.\r\n..\r\n.a\r\na.\r\n. \r\n`),
    encoding: 'utf-8',
  },
  {
    name: 'a dot that was not doubled',
    sent: bytes(`${HEAD}.a\r\n`),
    kept: bytes(`${HEAD}a\r\n`),
    encoding: 'utf-8',
  },
]

describe("a message's source", () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it.each(SOURCES)('is returned byte for byte: $name', async ({ sent, kept, encoding }) => {
    const inbox = await createInbox(mayfly)
    await sendBytes(mayfly, inbox.address, Buffer.concat([sent, bytes(END)]))
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    const path = `/v1/inboxes/${inbox.id}/messages/${id}`
    const { body } = await call<MessageJson>(mayfly, 'GET', path)
    expect(body.raw_encoding).toBe(encoding)
    const raw = Buffer.from(body.raw ?? '', encoding === 'base64' ? 'base64' : 'utf8')
    expect(raw.equals(kept)).toBe(true)
    expect(body).toMatchObject({ size: kept.length, sha256: createHash('sha256').update(kept).digest('hex') })

    const source = await fetch(mayfly.url + body.raw_url, { headers: bearer(mayfly) })
    expect(source.status).toBe(200)
    expect(source.headers.get('content-type')).toBe('message/rfc822')
    expect(source.headers.get('x-content-type-options')).toBe('nosniff')
    expect(source.headers.get('content-length')).toBe(String(kept.length))
    expect(Buffer.from(await source.arrayBuffer()).equals(kept)).toBe(true)

    const without = await call<MessageJson>(mayfly, 'GET', `${path}?raw=false`)
    expect(without.body).not.toHaveProperty('raw')
    expect(without.body).not.toHaveProperty('raw_encoding')
  })

  it.each([
    { accept: 'message/rfc822', status: 200 },
    { accept: 'message/*', status: 200 },
    { accept: '*/*', status: 200 },
    { accept: 'application/json', status: 406 },
  ])('has one media type: Accept $accept is answered $status', async ({ accept, status }) => {
    const inbox = await createInbox(mayfly)
    await sendBytes(mayfly, inbox.address, bytes(HEAD + END))
    const { raw_url } = only(await messagesOf(mayfly, inbox.id, 1))
    const answer = await call(mayfly, 'GET', raw_url, { headers: { accept } })
    expect(answer.status).toBe(status)
  })
})

function same(name: string, source: string | Buffer, encoding: 'utf-8' | 'base64') {
  return { name, sent: bytes(source), kept: bytes(source), encoding }
}

function bytes(source: string | Buffer): Buffer {
  return Buffer.from(source as string)
}

function allBytes(): Buffer {
  return Buffer.from(
    Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte !== 10 && byte !== 13),
  )
}

function bearer({ apiKey }: SharedMayfly): Record<string, string> {
  return { authorization: `Bearer ${apiKey}` }
}
