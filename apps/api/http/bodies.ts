import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { messageOf } from '#libs/fault/message-of.js'
import { note } from './access-log.js'
import { Problem } from './problems.js'

const BYTES = Symbol('bytes')
type Read = FastifyRequest & { [BYTES]?: Buffer }

/** The body as it came; none where there is none, or no JSON. */
export function bodyBytesOf(request: Read): Uint8Array {
  return request[BYTES] ?? new Uint8Array()
}

/** Bodies are JSON in UTF-8 (RFC 8259, section 8.1). None at all counts as `{}`, whatever type it is said to have. */
export function takeJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  const asBytes = { parseAs: 'buffer' } as const
  server.addContentTypeParser<Buffer>('application/json', asBytes, (request: Read, body, done) => {
    request[BYTES] = body
    note(request, { bodyBytes: body.length })
    const read = parse(request, body)
    if (read instanceof Problem) done(read)
    else done(null, read)
  })
  server.addContentTypeParser<Buffer>('*', asBytes, (request, body, done) => {
    note(request, { bodyBytes: body.length })
    if (body.length === 0) done(null, {})
    else done(notTaken('Only application/json is taken.'))
  })
}

/** Plain JSON.parse: what a property is called is judged where properties are, `__proto__` like any other. */
function parse({ headers }: FastifyRequest, body: Buffer): unknown {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return notTaken(`Bodies encoded with ${encoding} are not taken.`)
  }
  if (!isUtf8(body)) return new Problem('malformed-json', { detail: 'The body is not valid UTF-8.' })
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    return new Problem('malformed-json', { detail: messageOf(error) })
  }
}

function notTaken(detail: string): Problem {
  return new Problem('unsupported-media-type', { detail })
}
