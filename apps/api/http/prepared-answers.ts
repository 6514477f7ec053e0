import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import Negotiator from 'negotiator'

/*
 * Answers that are the same for every request: each is made once, in every encoding.
 */

/** The encodings of an answer (RFC 9110, section 8.4.1), the smallest first. */
const ENCODINGS = ['br', 'gzip', 'identity'] as const

/** An answer by its encodings. */
export interface PreparedAnswer {
  forms: Readonly<Record<(typeof ENCODINGS)[number], Buffer>>
  /** Differs if the content does. */
  etag: string
}

/** Far smaller than with the default, and made in a tenth of the time that the best quality takes. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }

export async function prepareAnswer(text: string): Promise<PreparedAnswer> {
  const identity = Buffer.from(text)
  const [br, gzipped] = await Promise.all([
    promisify(brotliCompress)(identity, BROTLI),
    promisify(gzip)(identity),
  ])
  const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 22)
  return { forms: { br, gzip: gzipped, identity }, etag: hash }
}

/**
 * Sends the form that the client accepts, or 304 if it has it already (RFC 9110, section 13.1.2). Each form has an
 * `ETag` of its own.
 */
export function sendPrepared(reply: FastifyReply, { forms, etag }: PreparedAnswer): FastifyReply {
  const { raw, headers } = reply.request
  const accepted = new Negotiator(raw).encodings([...ENCODINGS])
  const encoding = ENCODINGS.find((each) => accepted.includes(each)) ?? 'identity'
  const vary = [reply.getHeader('vary'), 'Accept-Encoding'].filter((each) => each !== undefined)
  const tag = `"${etag}-${encoding}"`
  void reply.headers({ vary: vary.join(', '), etag: tag })
  const known = headers['if-none-match']?.split(/\s*,\s*/).map((each) => each.replace(/^W\//, '')) ?? []
  if (known.includes(tag) || known.includes('*')) return reply.code(304).send()
  if (encoding !== 'identity') void reply.header('content-encoding', encoding)
  return reply.send(forms[encoding])
}
