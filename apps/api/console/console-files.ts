import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { ProblemFilter } from '../http/problem-filter.js'
import { notFound } from '../http/problems.js'
import { escaped } from '../openapi/docs-text.js'

/*
 * Serves the pages and files of the console, which infra/build/console.mjs writes. They are read once, at the first request,
 * so no path of a request reaches the file system.
 */

/** Nothing in the page is inline, and it talks to no other origin. `frame-src` is for mail, which has a policy of its own. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
}

/** The name of a file has the hash of its content. */
const FILE_HEADERS = { 'cache-control': 'public, max-age=31536000, immutable' }

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** The extensions of a file's forms by their encoding (RFC 9110, section 8.4.1), the smallest first. */
const EXTENSIONS = new Map([
  ['br', '.br'],
  ['gzip', '.gz'],
  ['identity', ''],
])
const ENCODINGS = [...EXTENSIONS.keys()]

interface BuiltConsole {
  page: string
  /** The page of the public inbox. */
  publicPage: string
  /** By name, such as `main-3F2A.js` and `main-3F2A.js.br`. */
  files: ReadonlyMap<string, Buffer>
}

/**
 * Adds GET and HEAD of /console and every path under it that has no other handler. The path / shows the page of the public
 * inbox, if there is one, or redirects to the console.
 */
export function serveConsole(
  server: FastifyInstance,
  problems: ProblemFilter,
  { publicInbox, abuseContact }: Pick<Settings, 'publicInbox' | 'abuseContact'>,
): void {
  let reading: Promise<BuiltConsole> | null = null
  const built = () => (reading ??= readConsole())
  const sendPage = async (_: FastifyRequest, reply: FastifyReply) => {
    const { page } = await built()
    return reply.headers(PAGE_HEADERS).send(page)
  }
  if (publicInbox) {
    server.get('/', async (_, reply) => {
      const { publicPage } = await built()
      const contact = `<meta name="abuse-contact" content="${escaped(abuseContact ?? '')}" />`
      return reply.headers(PAGE_HEADERS).send(publicPage.replace('</head>', () => `${contact}</head>`))
    })
  } else server.get('/', (_, reply) => reply.redirect('/console', 302))
  server.get('/console', sendPage)
  // The page shows the view that the path names.
  server.get('/console/*', sendPage)
  server.get<{ Params: { name: string } }>(
    '/console/files/:name',
    { errorHandler: (error, request, reply) => void problems.answer(error, request, reply) },
    async (request, reply) => {
      const { name } = request.params
      const { files } = await built()
      const mediaType = MEDIA_TYPES[extname(name)]
      const accepted = new Negotiator(request.raw).encodings(ENCODINGS)
      const encoding = ENCODINGS.find((each) => accepted.includes(each)) ?? 'identity'
      const body = files.get(`${name}${EXTENSIONS.get(encoding) ?? ''}`)
      if (body === undefined || mediaType === undefined)
        throw notFound(`The console has no file ${name.slice(0, 60)}.`)
      if (encoding !== 'identity') void reply.header('content-encoding', encoding)
      const vary = [reply.getHeader('vary'), 'Accept-Encoding'].filter((each) => each !== undefined)
      return reply.headers({ ...FILE_HEADERS, 'content-type': mediaType, vary: vary.join(', ') }).send(body)
    },
  )
}

async function readConsole(): Promise<BuiltConsole> {
  const folder = new URL('./', import.meta.resolve('#apps/console/main.js'))
  const names = await readdir(new URL('files', folder))
  const read = async (name: string) => [name, await readFile(new URL(`files/${name}`, folder))] as const
  const readPage = (name: string) => readFile(new URL(name, folder), 'utf8')
  const [page, publicPage, ...files] = await Promise.all([
    readPage('index.html'),
    readPage('public.html'),
    ...names.map(read),
  ])
  return { page, publicPage, files: new Map(files) }
}
