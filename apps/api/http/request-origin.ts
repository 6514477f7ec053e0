import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance } from 'fastify'
import type { EventOrigin } from '#libs/ports/event-log/cloud-event.js'
import type { PersonalData, PersonalOwner } from '#libs/ports/key-vault/personal-data.js'
import { remoteAddressOf } from './connection-limits.js'

/** `sealed` has the remote address for each account or member that an event of the request is of. */
const origins = new AsyncLocalStorage<EventOrigin & { sealed: Map<PersonalOwner, Promise<string>> }>()

/** Remembers the origin of each request for what its handler calls. */
export function rememberOrigins(server: FastifyInstance): void {
  // After the body was read: the events of its stream do not have the context of earlier hooks.
  server.addHook('preValidation', (request, _, done) => {
    const origin = { requestId: request.id, remoteAddress: remoteAddressOf(request), sealed: new Map() }
    origins.run(origin, done)
  })
}

/** The origin of the request whose handler is the caller, as events of the owner have it; null outside of requests. */
export async function currentOrigin(
  personal: Pick<PersonalData, 'sealAddress'>,
  owner: PersonalOwner,
): Promise<EventOrigin | null> {
  const origin = origins.getStore()
  if (origin === undefined) return null
  const { requestId, remoteAddress, sealed } = origin
  const sealing = sealed.get(owner) ?? personal.sealAddress(owner, remoteAddress)
  sealed.set(owner, sealing)
  return { requestId, remoteAddress: await sealing }
}
