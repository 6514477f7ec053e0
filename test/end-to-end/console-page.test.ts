import { extname } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { call } from '#test/harness/client.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'

const TYPES = new Map([
  ['.js', 'text/javascript'],
  ['.css', 'text/css'],
  ['.svg', 'image/svg+xml'],
])

describe('the page of the console', () => {
  let mayfly: SharedMayfly
  let page: string
  /** Paths of the files that the page loads. */
  let files: string[]

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    page = await (await fetch(`${mayfly.url}/console`)).text()
    files = Array.from(page.matchAll(/(?:src|href)="([^"]+)"/g), ([, path = '']) => path)
  })

  it('is found from the address of the API', async () => {
    const response = await fetch(mayfly.url, { redirect: 'manual' })
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toBe('/console')
  })

  test.each([
    '/console',
    '/console/inboxes/inb_01h455vb4pex5vsknk084sn02q',
    '/console/a/b?c=d',
    '/console/sign-in',
  ])('is at %s, in no cache, runs only its own files and is shown in no frame', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const response = await fetch(mayfly.url + path, { method })
      expect(response.status).toBe(200)
      expect(await response.text()).toBe(method === 'HEAD' ? '' : page)
      const { headers } = response
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      )
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
    }
  })

  it('has nothing inline', () => {
    expect(page).not.toMatch(/<style|style="|<script(?![^>]* src=)| on\w+="/)
  })

  it('loads files that browsers cache for ever, since their names have a hash', async () => {
    expect(files).toHaveLength(5)
    for (const path of files) {
      expect(path).toMatch(/^\/console\/files\/\w+-[A-Z0-9]{8}\.(js|css|svg)$/)
      const response = await fetch(mayfly.url + path)
      expect(response.status).toBe(200)
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(response.headers.get('content-type')?.split(';')[0]).toBe(TYPES.get(extname(path)))
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    }
  })

  it('loads compressed files, in a form that the browser accepts', async () => {
    const path = files.find((each) => each.endsWith('.js')) ?? ''
    const load = async (accepted: string) => {
      const headers = { 'accept-encoding': accepted }
      const { headers: answered, body } = await request(mayfly.url + path, { headers })
      const { 'content-encoding': encoding = null, vary } = answered
      expect(vary).toMatch(/\bAccept-Encoding$/)
      return { encoding, bytes: Buffer.from(await body.arrayBuffer()) }
    }
    const plain = await load('identity')
    const [brotli, gzip] = [await load('gzip, deflate, br'), await load('gzip, br;q=0')]
    expect([plain.encoding, brotli.encoding, gzip.encoding]).toEqual([null, 'br', 'gzip'])
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).toBe(true)
    expect(gunzipSync(gzip.bytes).equals(plain.bytes)).toBe(true)
    expect(brotli.bytes.length).toBeLessThan(plain.bytes.length / 2)
  })

  test.each([
    { path: '/console/files/main.js' },
    { path: '/console/files/..%2findex.html' },
    { path: '/console/files/%2e%2e%2findex.html' },
    { path: '/console/files/..%2f..%2f..%2fpackage.json' },
    { path: '/console/files/' },
    { path: `/console/files/${'a'.repeat(5_000)}.js` },
  ])('has no other files: %.80j', async ({ path }) => {
    expectProblem(await call(mayfly, 'GET', path), { status: 404, code: 'not-found' })
  })

  it('has no file that only differs from one by its compression', async () => {
    for (const extension of ['.br', '.gz', '.map']) {
      const answer = await call(mayfly, 'GET', `${files[0] ?? ''}${extension}`)
      expectProblem(answer, { status: 404, code: 'not-found' })
    }
  })

  test.each([
    { method: 'POST', path: '/console', allow: 'GET, HEAD' },
    { method: 'PUT', path: '/console/inboxes', allow: 'GET, HEAD' },
    { method: 'POST', path: '/console/files/main.js', allow: 'GET, HEAD' },
    { method: 'POST', path: '/', allow: 'GET, HEAD' },
  ])('refuses $method $path', async ({ method, path, allow }) => {
    const answer = await call(mayfly, method, path)
    expectProblem(answer, { status: 405, code: 'method-not-allowed' })
    expect(answer.headers.get('allow')).toBe(allow)
  })
})
