import type { FastifyReply, FastifyRequest } from 'fastify'

/** Sets `Link` to the same list with another cursor (RFC 8288), in the family of the request's path. */
export function linkNext(request: FastifyRequest, reply: FastifyReply, cursor: string): void {
  const [path = '', query = ''] = request.url.split('?', 2)
  const parameters = new URLSearchParams(query)
  parameters.set('cursor', cursor)
  void reply.header('link', `<${path}?${parameters.toString()}>; rel="next"`)
}

/** The family that a request came by, `/v1/inboxes` or `/v1/emails`: links in its answer stay in it. */
export function familyOf(request: FastifyRequest): string {
  return request.url.startsWith('/v1/emails') ? '/v1/emails' : '/v1/inboxes'
}
