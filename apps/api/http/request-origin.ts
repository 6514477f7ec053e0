import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance } from 'fastify'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { EventOrigin } from '#libs/ports/event-log/cloud-event.js'
import type { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import { remoteAddressOf } from './connection-limits.js'

const origins = new AsyncLocalStorage<{ requestId: string; remoteAddress: string }>()

/** Remembers the origin of each request for what its handler calls. */
export function rememberOrigins(server: FastifyInstance): void {
  // After the body was read: the events of its stream do not have the context of earlier hooks.
  server.addHook('preValidation', (request, _, done) => {
    origins.run({ requestId: request.id, remoteAddress: remoteAddressOf(request) }, done)
  })
}

/** The origin of the request whose handler is the caller, as events of the account have it; null outside of requests. */
export async function currentOrigin(
  personal: Pick<PersonalData, 'sealAddress'>,
  accountId: AccountId,
): Promise<EventOrigin | null> {
  const origin = origins.getStore()
  if (origin === undefined) return null
  const { requestId, remoteAddress } = origin
  return { requestId, remoteAddress: await personal.sealAddress(accountId, remoteAddress) }
}
