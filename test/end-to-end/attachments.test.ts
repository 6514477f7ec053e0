import { call, createInbox, messagesOf, only, send } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

const CONTENT = Buffer.from(Array.from({ length: 1_000 }, (_, index) => (index * 7) % 256))

interface Part {
  type: string
  content?: Buffer
  /** The parameters of the header, as in the mail. */
  disposition: string
}

describe('an attachment', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  const received = async (...parts: Part[]) => {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, mixed(parts))
    const message = only(await messagesOf(mayfly, inbox.id, 1))
    return { message, path: `/v1/inboxes/${inbox.id}/messages/${message.id}/attachments` }
  }
  const fetchAt = (path: string) =>
    fetch(mayfly.url + path, { headers: { authorization: `Bearer ${mayfly.apiKey}` } })

  it('is returned byte for byte, for download', async () => {
    const { message, path } = await received(
      { type: 'application/pdf', disposition: 'attachment; filename="a.pdf"' },
      { type: 'image/png', disposition: 'inline; filename="b.png"' },
    )
    expect(message.attachments.map(({ filename }) => filename)).toEqual(['a.pdf', 'b.png'])
    for (const { index, filename, content_type: type } of message.attachments) {
      const answer = await fetchAt(`${path}/${index}`)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe(type)
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(answer.headers.get('content-disposition')).toMatch(/^attachment; /)
      expect(fileName(answer.headers.get('content-disposition') ?? '')).toBe(filename)
      expect(Buffer.from(await answer.arrayBuffer()).equals(CONTENT)).toBe(true)
    }
  })

  it.each([
    { disposition: 'attachment; filename="plain name.txt"', name: 'plain name.txt' },
    {
      disposition: `attachment; filename*=UTF-8''Rechnung%20M%C3%A4rz%20%E2%82%AC.pdf`,
      name: 'Rechnung März €.pdf',
    },
    { disposition: 'attachment; filename="=?utf-8?B?5pel5pys?="', name: '日本' },
    { disposition: 'attachment; filename="../../etc/passwd"', name: 'passwd' },
    { disposition: 'attachment; filename="C:\\\\Windows\\\\evil.exe"', name: 'evil.exe' },
    { disposition: 'attachment; filename="a\\"; x=\\"b.txt"', name: 'a"; x="b.txt' },
    { disposition: `attachment; filename*=UTF-8''a%0D%0ASet-Cookie:%20x=1`, name: 'aSet-Cookie: x=1' },
    { disposition: `attachment; filename*=UTF-8''cod%E2%80%AEfdp.exe`, name: 'codfdp.exe' },
    { disposition: 'attachment; filename=".."', name: 'attachment' },
    { disposition: 'attachment; filename=".ssh"', name: 'ssh' },
    { disposition: 'attachment; filename="NUL.txt"', name: '_NUL.txt' },
    { disposition: 'attachment; filename="a. . ."', name: 'a' },
    {
      disposition: `attachment; filename*=UTF-8''${'%E6%BC%A2'.repeat(300)}.pdf`,
      name: `${'漢'.repeat(65)}.pdf`,
    },
    { disposition: 'attachment; filename=""', name: 'attachment' },
    { disposition: 'attachment', name: 'attachment' },
    { disposition: `attachment; filename="${'x'.repeat(600)}.pdf"`, name: `${'x'.repeat(196)}.pdf` },
  ])('gets a safe file name: $disposition', async ({ disposition, name }) => {
    const { path } = await received({ type: 'application/octet-stream', disposition })
    const answer = await fetchAt(`${path}/0`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(fileName(answer.headers.get('content-disposition') ?? '')).toBe(name)
  })

  it.each([
    { type: 'text/calendar; method=REQUEST', name: 'invitation.ics' },
    { type: 'message/rfc822', name: 'message.eml' },
    { type: 'image/png', name: 'attachment.png' },
    { type: 'image/x-icon', name: 'attachment.ico' },
    { type: 'application/unknown', name: 'attachment' },
  ])('without a name gets one from its type, $type', async ({ type, name }) => {
    const { message, path } = await received({ type, disposition: 'attachment' })
    expect(message.attachments[0]?.filename).toBeNull()
    const answer = await fetchAt(`${path}/0`)
    expect(fileName(answer.headers.get('content-disposition') ?? '')).toBe(name)
  })

  it.each([
    'text/html',
    'image/svg+xml',
    'application/xhtml+xml',
    'text/xml',
    'text/javascript',
    'text/html; charset=utf-7',
    'TEXT/HTML',
    'application/x-shockwave-flash',
    'application/vnd.mozilla.xul+xml',
    'garbage',
  ])('is never displayed by a browser: %s', async (type) => {
    const { message, path } = await received({ type, disposition: 'attachment; filename="page.html"' })
    expect(message.attachments[0]?.content_type).toBe(declaredType(type))
    const answer = await fetchAt(`${path}/0`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/octet-stream')
    expect(answer.headers.get('content-disposition')).toMatch(/^attachment;/)
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-security-policy')).toContain('sandbox')
  })

  it('that is a PDF with a script is sent as application/octet-stream', async () => {
    const type = 'application/pdf'
    const disposition = 'attachment; filename="a.pdf"'
    const { message, path } = await received(
      { type, disposition, content: Buffer.from('%PDF-1.7\n<</S/JavaScript/JS(app.alert(1))>>') },
      { type, disposition, content: Buffer.from('%PDF-1.7\n<</Type/Catalog>>') },
    )
    expect(message.attachments.map((attachment) => attachment.content_type)).toEqual([type, type])
    const answers = await Promise.all(['0', '1'].map((index) => fetchAt(`${path}/${index}`)))
    expect(answers.map(({ headers }) => headers.get('content-type'))).toEqual([
      'application/octet-stream',
      type,
    ])
  })

  it.each(['1', '-1', '99', '999999999999', '1.0', 'x', '%00', '0x0', 'a.pdf'])(
    'is not found at %s',
    async (index) => {
      const { path } = await received({
        type: 'application/pdf',
        disposition: 'attachment; filename="a.pdf"',
      })
      expectProblem(await call(mayfly, 'GET', `${path}/${index}`), { status: 404, code: 'not-found' })
    },
  )

  it('is returned to a hundred concurrent requests', async () => {
    const { path } = await received({ type: 'application/pdf', disposition: 'attachment; filename="a.pdf"' })
    const answers = await Promise.all(Array.from({ length: 100 }, () => fetchAt(`${path}/0`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    await Promise.all(answers.map((answer) => answer.arrayBuffer()))
  })

  it('takes no parameters', async () => {
    const { path } = await received({ type: 'application/pdf', disposition: 'attachment' })
    const at = [{ parameter: 'inline' }]
    expectProblem(await call(mayfly, 'GET', `${path}/0?inline=true`), {
      status: 400,
      code: 'invalid-request',
      at,
    })
  })
})

function mixed(parts: Part[]): string {
  const body = parts.flatMap(({ type, disposition, content = CONTENT }) => [
    '--part',
    `Content-Type: ${type}`,
    `Content-Disposition: ${disposition}`,
    'Content-Transfer-Encoding: base64',
    '',
    ...(content.toString('base64').match(/.{1,76}/g) ?? []),
  ])
  return ['Subject: parts', 'Content-Type: multipart/mixed; boundary=part', '', ...body, '--part--', ''].join(
    '\r\n',
  )
}

/** The content type in the message: without parameters, and application/octet-stream if it is invalid. */
function declaredType(type: string): string {
  const [name = ''] = type.toLowerCase().split(';')
  return name.includes('/') ? name : 'application/octet-stream'
}

/** The file name as a browser reads it (RFC 6266): `filename*` before `filename`. */
function fileName(disposition: string): string {
  const [, extended] = /; filename\*=UTF-8''([^;]+)/.exec(disposition) ?? []
  if (extended !== undefined) return decodeURIComponent(extended)
  const [, token, quoted] = /; filename=(?:([^";]+)|"((?:[^"\\]|\\.)*)")/.exec(disposition) ?? []
  return token ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1')
}
