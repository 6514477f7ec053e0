import type { FastifyReply, FastifyRequest } from 'fastify'

/** A request's path, also where its target came in absolute form (RFC 9112, section 3.2.2). */
export function pathOf({ url }: FastifyRequest): string {
  return targetOf(url)[0]
}

/**
 * Sets `Link` to the same list with another cursor (RFC 8288), in the family of the request's path. What else
 * the query asks for stands as the client wrote it, so that every page is read alike.
 */
export function linkNext(request: FastifyRequest, reply: FastifyReply, cursor: string): void {
  const [path, query] = targetOf(request.url)
  const others = query.split('&').filter((pair) => pair !== '' && !/^cursor(=|$)/.test(decoded(pair)))
  const target = `${path}?${[...others, `cursor=${cursor}`].join('&')}`
  void reply.header('link', `<${target.replaceAll(/[<>"\\^`{|}]/g, encodeURIComponent)}>; rel="next"`)
}

/** The family that a request came by, `/v1/inboxes` or `/v1/emails`: links in its answer stay in it. */
export function familyOf(request: FastifyRequest): string {
  return request.routeOptions.url?.startsWith('/v1/emails') === true ? '/v1/emails' : '/v1/inboxes'
}

function targetOf(url: string): [path: string, query: string] {
  const target = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, '')
  const mark = target.indexOf('?')
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
