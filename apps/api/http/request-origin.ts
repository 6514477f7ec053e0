import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance } from 'fastify'
import type { EventOrigin } from '#libs/ports/event-log/cloud-event.js'
import { remoteAddressOf } from './connection-limits.js'

const origins = new AsyncLocalStorage<EventOrigin>()

/** Remembers the origin of each request for what its handler calls. */
export function rememberOrigins(server: FastifyInstance): void {
  // After the body was read: the events of its stream do not have the context of earlier hooks.
  server.addHook('preValidation', (request, _, done) => {
    origins.run({ requestId: request.id, remoteAddress: remoteAddressOf(request) }, done)
  })
}

/** The origin of the request whose handler is the caller; null outside of requests. */
export function currentOrigin(): EventOrigin | null {
  return origins.getStore() ?? null
}
