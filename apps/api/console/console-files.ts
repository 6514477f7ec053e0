import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Settings } from '#libs/runtime/config/settings.js'
import { prepareAnswer, sendPrepared, type PreparedAnswer } from '../http/prepared-answers.js'
import type { ProblemFilter } from '../http/problem-filter.js'
import { notFound } from '../http/problems.js'
import { escaped } from '../http/html.js'

/*
 * Serves the pages and files of the console, which infra/build/console.mjs writes. They are read once, at the first request,
 * so no path of a request reaches the file system.
 */

/** No script is inline, and the page talks to no other origin. `frame-src` is for mail, which has a policy of its own. */
function policy(styles: string): string {
  return (
    `default-src 'none'; script-src 'self'; style-src ${styles}; img-src 'self' data:; connect-src 'self'; ` +
    "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
  )
}

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy("'self'"),
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
}

/** The name of a file has the hash of its content. */
const FILE_HEADERS = { 'cache-control': 'public, max-age=31536000, immutable' }

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

interface BuiltConsole {
  page: PreparedAnswer
  /** The page of the public inbox. */
  publicPage: string
  /** The API reference. */
  docsPage: PreparedAnswer
  /** By name, such as `main-3F2A.js`. */
  files: ReadonlyMap<string, PreparedAnswer>
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
  const sendPage = async (_: FastifyRequest, reply: FastifyReply) => {
    const { page } = await built()
    return sendPrepared(reply.headers(PAGE_HEADERS), page)
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
      const file = files.get(name)
      if (file === undefined || mediaType === undefined)
        throw notFound(`The console has no file ${name.slice(0, 60)}.`)
      return sendPrepared(reply.headers({ ...FILE_HEADERS, 'content-type': mediaType }), file)
    },
  )
}

/** Answers with the page of the API reference. Its elements contain their styles. */
export async function sendDocs(reply: FastifyReply): Promise<void> {
  const { docsPage } = await built()
  const headers = { ...PAGE_HEADERS, 'content-security-policy': policy("'self' 'unsafe-inline'") }
  await sendPrepared(reply.headers(headers), docsPage)
}

let reading: Promise<BuiltConsole> | null = null

function built(): Promise<BuiltConsole> {
  return (reading ??= readConsole())
}

async function readConsole(): Promise<BuiltConsole> {
  const folder = new URL('./', import.meta.resolve('#apps/console/main.js'))
  const names = await readdir(new URL('files', folder))
  const readFileOf = (name: string) => readFile(new URL(`files/${name}`, folder))
  const prepare = async (name: string): Promise<[string, PreparedAnswer]> => {
    const [br, gzip, identity] = await Promise.all([
      readFileOf(`${name}.br`),
      readFileOf(`${name}.gz`),
      readFileOf(name),
    ])
    return [name, { forms: { br, gzip, identity }, etag: name }]
  }
  const readPage = (name: string) => readFile(new URL(name, folder), 'utf8')
  const [page, publicPage, docsPage, ...files] = await Promise.all([
    readPage('index.html').then(prepareAnswer),
    readPage('public.html'),
    readPage('docs.html').then(prepareAnswer),
    ...names.filter((name) => extname(name) in MEDIA_TYPES).map(prepare),
  ])
  return { page, publicPage, docsPage, files: new Map(files) }
}
