import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Mayfly, MayflyError } from '#clients/typescript/src/mayfly.js'

const INBOX = { id: 'inb_1', address: 'one@mayfly.test' }

/** What the scenarios of all clients do not show, with a server that answers as each test demands. */
describe('the TypeScript client', () => {
  let server: Server
  let url: string
  let answer: RequestListener
  const requests: string[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      requests.push(`${request.method} ${request.url} ${request.headers.authorization}`)
      answer(request, response)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    requests.length = 0
    answer = (_, response) => response.end(JSON.stringify(INBOX))
  })
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  it('accepts a URL and a key with a line end, and slashes after the URL', async () => {
    await new Mayfly({ url: `${url}//\n`, apiKey: 'key\n' }).account()
    expect(requests).toEqual(['GET /v1/account Bearer key'])
  })

  it.each(['127.0.0.1:3000', 'ftp://127.0.0.1', 'http://', 'http://127.0.0.1?a=b', 'http://user@127.0.0.1'])(
    'refuses the URL %s',
    (text) => {
      expect(() => new Mayfly({ url: text, apiKey: 'key' })).toThrow(/must be an http or https URL/)
    },
  )

  it.each(['mf secret', 'mf\nsecret', 'mf_sécret'])('refuses the key %j without showing it', (apiKey) => {
    expect(() => new Mayfly({ url, apiKey })).toThrow(/^The API key has a character that no key has/)
  })

  it.each(['', '.', '..'])('sends no request for the id "%s"', async (id) => {
    const mayfly = new Mayfly({ url, apiKey: 'key' })
    const inbox = await mayfly.inboxes.get('inb_1')
    await expect(inbox.deleteMessage(id)).rejects.toThrow('is empty, "." or ".."')
    await expect(mayfly.inboxes.delete(id)).rejects.toThrow('is empty, "." or ".."')
    expect(requests).toHaveLength(1)
  })

  it('refuses options that plain JavaScript can get wrong', async () => {
    const inbox = await new Mayfly({ url, apiKey: 'key' }).inboxes.get('inb_1')
    const wrong = (options: object) => options as { timeoutMs: number }
    await expect(inbox.waitForCode(wrong({ timeout: 500 }))).rejects.toThrow('use timeoutMs')
    await expect(inbox.waitForCode(wrong({ subject: /Wel/ }))).rejects.toThrow(
      'The option subject must be a text',
    )
    await expect(inbox.waitForLink(wrong({ timeoutMs: 500 }) as unknown as string)).rejects.toThrow(
      'must be a text or',
    )
    expect(requests).toHaveLength(1)
  })

  it('says why no connection was possible', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    const mayfly = new Mayfly({ url: `http://127.0.0.1:${port}`, apiKey: 'key' })
    await expect(mayfly.account()).rejects.toThrow(`connect ECONNREFUSED 127.0.0.1:${port}`)
  })

  it('calls fetch as a function, not as a method, which browsers refuse', async () => {
    const receivers: unknown[] = []
    const mayfly = new Mayfly({
      url,
      apiKey: 'key',
      fetch(this: unknown, ...request) {
        receivers.push(this)
        return fetch(...request)
      },
    })
    await mayfly.account()
    expect(receivers).toEqual([undefined])
  })

  it('says if the server does not know expressions', async () => {
    const inbox = await new Mayfly({ url, apiKey: 'key' }).inboxes.get('inb_1')
    answer = (_, response) =>
      response.setHeader('Mayfly-Cursor', 'a').end(JSON.stringify({ id: 'msg_1', attachments: [] }))
    await expect(inbox.waitForMatch('a')).rejects.toThrow(
      new MayflyError('The server does not support extract.'),
    )
  })

  it('passes on what the manifest of a verification throws', async () => {
    answer = (request, response) =>
      void request.resume().on('end', () => response.end('{"kind":"summary"}\n'))
    function* manifest() {
      yield { recipient: 'one@mayfly.test', id: '1' }
      throw new RangeError('line 2 is missing')
    }
    const lines = new Mayfly({ url, apiKey: 'key' }).runs.verify('run:1', manifest())
    await expect(lines.next()).rejects.toThrow(new RangeError('line 2 is missing'))
  })

  it('says that the answer to a verification is incomplete if the connection breaks', async () => {
    answer = (_, response) => {
      response.write('{"kind":"missing"}\n')
      setTimeout(() => response.destroy(), 100)
    }
    const lines = new Mayfly({ url, apiKey: 'key' }).runs.verify('run:1', [])
    await expect(lines.next()).resolves.toMatchObject({ value: { kind: 'missing' } })
    await expect(lines.next()).rejects.toThrow('The answer ended before its summary.')
  })

  it('waits for months without sending more requests', async () => {
    answer = (_, response) => void pause(100).then(() => response.end(JSON.stringify(INBOX)))
    const months = new Mayfly({ url, apiKey: 'key', timeoutMs: 2 ** 33 })
    await months.account()
    expect(requests).toHaveLength(1)
  })

  it("says at once that a password can't be sent", async () => {
    const call = new Mayfly({ url, apiKey: 'key' }).inboxes.get('inb_1', { password: 'a\nb' })
    await expect(call).rejects.toMatchObject({ name: 'TypeError' })
    expect(requests).toEqual([])
  })

  it('deletes an inbox at the end of its block, unless it has ended', async () => {
    const inbox = await new Mayfly({ url, apiKey: 'key' }).inboxes.get('inb_1')
    answer = (_, response) => {
      response.writeHead(410, { 'content-type': 'application/problem+json' })
      response.end(JSON.stringify({ code: 'inbox-expired', status: 410, request_id: 'req_1' }))
    }
    await inbox[Symbol.asyncDispose]()
    expect(requests.at(-1)).toMatch(/^DELETE /)
    answer = (_, response) => response.writeHead(401).end()
    await expect(inbox[Symbol.asyncDispose]()).rejects.toThrow('401')
  })

  it('opens a stream again only after a pause, if it ends at once', async () => {
    const inbox = await new Mayfly({ url, apiKey: 'key' }).inboxes.get('inb_1')
    const aborting = new AbortController()
    const openedAtMs: number[] = []
    answer = (_, response) => {
      openedAtMs.push(performance.now())
      if (openedAtMs.length === 2) aborting.abort()
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': hello\n\n')
    }
    const next = inbox.events({ since: 'a', signal: aborting.signal }).next()
    await expect(next).rejects.toThrow(/aborted/)
    const [first = 0, second = 0] = openedAtMs
    expect(second - first).toBeGreaterThan(450)
  })
})
