import {
  call,
  mail,
  messagesOf,
  nextOf,
  only,
  pagesFrom,
  send,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { speakHttp } from '#test/harness/wire.js'

const FAMILIES = ['/v1/inboxes', '/v1/emails']

describe.each(FAMILIES)('the paths under %s', (family) => {
  const other = FAMILIES.find((name) => name !== family) ?? ''
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it('serve the whole life of an inbox, with links under the same path', async () => {
    const labels = { family: family.slice(4) }
    const created = await call<InboxJson>(mayfly, 'POST', family, { body: { labels } })
    expect(created.status).toBe(201)
    const { id, address } = created.body
    expect(created.headers.get('location')).toBe(`${family}/${id}`)

    await send(mayfly, address, mixed())
    await send(mayfly, address, mail('second'))
    await messagesOf(mayfly, id, 2)
    const pages = await pagesFrom<MessageJson>(mayfly, `${family}/${id}/messages?limit=1`)
    expect(pages).toHaveLength(2)
    expect(nextOf(pages[0] ?? created)).toMatch(new RegExp(`^${family}/`))
    const message = only(pages[0]?.body ?? [])
    expect(message.raw_url).toBe(`${family}/${id}/messages/${message.id}/raw`)
    expect((await call(mayfly, 'GET', message.raw_url)).body).toBe(mixed())

    const path = `${family}/${id}/messages/${message.id}`
    expect((await call<MessageJson>(mayfly, 'GET', path)).body.raw_url).toBe(message.raw_url)
    expect((await call(mayfly, 'GET', `${path}/attachments/0`)).body).toBe('attached')
    expect((await call(mayfly, 'DELETE', path)).status).toBe(200)
    expect((await call<InboxJson>(mayfly, 'GET', `${family}/${id}`)).body.message_count).toBe(1)
    expect((await call(mayfly, 'DELETE', `${family}/${id}`)).status).toBe(200)
    expect((await call(mayfly, 'GET', `${family}/${id}`)).status).toBe(410)
  })

  it('show inboxes that were created under the other path', async () => {
    const { body, headers } = await call<InboxJson>(mayfly, 'POST', other)
    const same = await call<InboxJson>(mayfly, 'GET', `${family}/${body.id}`)
    expect(same.body).toEqual(body)
    const cursor = headers.get('mayfly-cursor') ?? ''
    expect((await call(mayfly, 'GET', `${family}/${body.id}/messages?cursor=${cursor}`)).status).toBe(200)
    const listed = await call<InboxJson[]>(mayfly, 'GET', family)
    expect(listed.body).toContainEqual(body)
  })

  it('are used in the links of a list of inboxes', async () => {
    for (let made = 0; made < 2; made += 1) await call(mayfly, 'POST', family)
    const next = nextOf(await call(mayfly, 'GET', `${family}?limit=1`))
    expect(next).toMatch(new RegExp(`^${family}\\?limit=1&cursor=`))
  })

  it('are used in links for a request target in absolute form', async () => {
    for (let made = 0; made < 2; made += 1) await call(mayfly, 'POST', family)
    const head = `Host: x\r\nAuthorization: Bearer ${mayfly.apiKey}\r\n\r\n`
    const [answer] = await speakHttp(mayfly, `GET http://x${family}?limit=1 HTTP/1.1\r\n${head}`)
    expect(answer?.headers.get('link')).toMatch(new RegExp(`^<${family}\\?limit=1&cursor=`))
  })
})

function mixed(): string {
  return [
    'Subject: first',
    'Content-Type: multipart/mixed; boundary=part',
    '',
    '--part',
    'Content-Type: text/plain; name=a.txt',
    'Content-Disposition: attachment; filename=a.txt',
    '',
    'attached',
    '--part--',
    '',
  ].join('\r\n')
}
