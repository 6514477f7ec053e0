import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { messageOf } from '#libs/fault/message-of.js'
import { note } from './access-log.js'
import { Problem } from './problems.js'

const BYTES = Symbol('bytes')
type Read = FastifyRequest & { [BYTES]?: Buffer }

/** The body as it came; `{}` where there is none, as which none counts, or no JSON. */
export function bodyBytesOf(request: Read): Uint8Array {
  return request[BYTES] ?? Buffer.from('{}')
}

/** Bodies are JSON in UTF-8 (RFC 8259, section 8.1). None at all counts as `{}`, whatever type it is said to have. */
export function takeJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  const asBytes = { parseAs: 'buffer' } as const
  server.addContentTypeParser<Buffer>('application/json', asBytes, (request: Read, body, done) => {
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
function parse(request: Read, body: Buffer): unknown {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return notTaken(`Bodies encoded with ${encoding} are not taken.`)
  }
  if (!isUtf8(body)) return new Problem('malformed-json', { detail: 'The body is not valid UTF-8.' })
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (text.trim() === '') return {}
  request[BYTES] = body
  try {
    return JSON.parse(text)
  } catch (error) {
    return new Problem('malformed-json', { detail: messageOf(error) })
  }
}

function notTaken(detail: string): Problem {
  return new Problem('unsupported-media-type', { detail })
}
