import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from './problems.js'

/** Bodies are JSON in UTF-8 (RFC 8259, section 8.1). None at all counts as `{}`, whatever type it is said to have. */
export function takeJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => parse(request, body),
  )
  server.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, async (_: FastifyRequest, body: Buffer) => {
    if (body.length === 0) return {}
    throw new Problem('unsupported-media-type', { detail: 'Only application/json is taken.' })
  })
}

/** Plain JSON.parse: what a property is called is judged where properties are, `__proto__` like any other. */
function parse({ headers }: FastifyRequest, body: Buffer): unknown {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Problem('unsupported-media-type', { detail: `Bodies encoded with ${encoding} are not taken.` })
  }
  if (!isUtf8(body)) throw new Problem('malformed-json', { detail: 'The body is not valid UTF-8.' })
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem('malformed-json', { detail: error instanceof Error ? error.message : String(error) })
  }
}
