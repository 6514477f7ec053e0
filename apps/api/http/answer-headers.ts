import type { FastifyReply } from 'fastify'

/** Of every answer: it is kept by nobody on its way, and taken for what it says it is. */
export const SAFE_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/** Of pages besides: they load and run nothing, stand in no frame, and tell no other page where a reader comes from. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
} as const

/** Sets what a handler has not set otherwise. */
export function setSafeHeaders(reply: FastifyReply): void {
  const isPage = /^text\/html\b/.test(String(reply.getHeader('content-type') ?? ''))
  const headers = isPage ? { ...SAFE_HEADERS, ...PAGE_HEADERS } : SAFE_HEADERS
  for (const [name, value] of Object.entries(headers))
    if (!reply.hasHeader(name)) void reply.header(name, value)
}
