import type { AddressInfo } from 'node:net'
import { NestFactory } from '@nestjs/core'
import type { NestFastifyApplication } from '@nestjs/platform-fastify'
import { movedChannel } from '#libs/ports/read-model/consistent-views.js'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { apiModule } from './api.module.js'
import { makeServer } from './http/server.js'
import { makeSharedServices, type ApiOptions } from './shared-services.js'

/*
 * The API answers queries from the views, and commands once the events they lead to are durable on the log and show in
 * the views. It consumes nothing.
 */

export interface Api {
  /** The base of every path, and of links in problems. */
  url: string
  port: number
  /** Stops listening, answers the requests under way and releases its resources. */
  close(): Promise<void>
}

/** Requests that are still being sent or answered this long after the API has stopped listening are cut. */
const ANSWERED_WITHIN_MS = 10_000

/** Clients that may connect at the same moment: thousands begin to wait at once. The system may allow fewer. */
const BACKLOG = 4_096

/** Resolves once the API listens. Rejects with the name of the wrong setting if it can't. */
export async function startApi(options: ApiOptions): Promise<Api> {
  const { engine, settings, logger, now } = options
  let url = settings.publicUrl ?? ''
  const shutdown = new AbortController()
  const publicUrl = () => url
  const shared = makeSharedServices(options)
  const server = makeServer(shared, {
    ...{ settings, logger, now, publicUrl },
    shutdown: shutdown.signal,
  })
  const module = apiModule(options, shared, publicUrl)
  const app = await NestFactory.create<NestFastifyApplication>(module, server, {
    logger: false,
    bodyParser: false,
    abortOnError: false,
  })
  let stopListening: () => void = () => undefined
  try {
    const accountsMoved = movedChannel({ topic: 'account-events', partition: 0 })
    stopListening = await engine.signals.subscribe(accountsMoved, () => shared.knownKeys.forgetAll())
    await app
      .listen({ port: settings.httpPort, host: settings.httpHost, backlog: BACKLOG })
      .catch((error: unknown) => {
        throw listenError(error, { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_HTTP_PORT' })
      })
    const { port } = app.getHttpServer().address() as AddressInfo
    shared.countedUpTo?.start()
    logger.debug({ routes: shared.methods.routes }, 'taking requests')
    if (url === '') url = `http://${urlHost(settings.httpHost)}:${port}`
    return {
      url,
      port,
      async close() {
        shutdown.abort()
        stopListening()
        shared.endLongRequests()
        const timer = setTimeout(() => app.getHttpServer().closeAllConnections(), ANSWERED_WITHIN_MS)
        await app.close()
        clearTimeout(timer)
        await shared.close()
      },
    }
  } catch (error) {
    stopListening()
    await app.close()
    await shared.close()
    throw error
  }
}

/** A host as part of a URL: IPv6 in brackets (RFC 3986, section 3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
