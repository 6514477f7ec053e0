import type { AddressInfo } from 'node:net'
import { NestFactory } from '@nestjs/core'
import type { NestFastifyApplication } from '@nestjs/platform-fastify'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { progressChannel } from '#libs/ports/read-model/consistent-views.js'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { apiModule } from './api.module.js'
import { ConsoleAddress } from './console/console-address.js'
import { serveConsole } from './console/console-files.js'
import { KEY_ALONE } from './access/principal.js'
import { ConsoleSessions } from './console/console-sessions.service.js'
import { shuttingDown } from './http/problems.js'
import { makeServer } from './http/server.js'
import { RANDOM_MINTING } from './idempotency/minting.js'
import { makeSharedServices, type ApiOptions } from './shared-services.js'

/*
 * The API answers queries from the views. It answers commands once their events are durable on the log and visible in
 * the views. It consumes no events.
 */

export interface Api {
  /** The base of every path, and of links in problems. */
  url: string
  port: number
  /** A link that signs in to the console as the account; null if the account has no key with the scope `admin`. */
  createConsoleLink(accountId: AccountId): Promise<string | null>
  close(): Promise<void>
}

/** The maximum time for open requests after the API has stopped listening. Then their connections are closed. */
const CLOSE_WITHIN_MS = 10_000

/** Clients that may connect at the same time: thousands may start to wait at once. The system may allow fewer. */
const BACKLOG = 4_096

/** Resolves once the API listens. If it can't, rejects with the name of the setting that is wrong. */
export async function startApi(options: ApiOptions): Promise<Api> {
  const { engine, settings, logger } = options
  let url = settings.publicUrl ?? ''
  let localUrl = ''
  const shutdown = new AbortController()
  const publicUrl = () => url
  const shared = makeSharedServices(options, publicUrl)
  const server = makeServer(shared, { ...options, publicUrl, shutdown: shutdown.signal })
  const { problems } = shared
  serveConsole(server.getInstance(), problems, settings)
  if (settings.servesMcp) {
    // Loads a package that most servers don't need.
    const { serveMcp } = await import('./mcp/mcp-route.js')
    serveMcp(server.getInstance(), { problems, localUrl: () => localUrl, shutdown: shutdown.signal })
  }
  const module = apiModule(options, shared, publicUrl)
  const app = await NestFactory.create<NestFastifyApplication>(module, server, {
    logger: false,
    bodyParser: false,
    abortOnError: false,
  })
  const subscriptions: (() => void)[] = []
  const close = async () => {
    shutdown.abort(shuttingDown('This instance is shutting down.'))
    for (const end of subscriptions) end()
    shared.endLongRequests()
    const timer = setTimeout(() => app.getHttpServer().closeAllConnections(), CLOSE_WITHIN_MS)
    await app.close()
    clearTimeout(timer)
    await shared.close()
  }
  try {
    const accountsChanged = progressChannel({ topic: 'account-events', partition: 0 })
    subscriptions.push(
      await engine.signals.subscribe(accountsChanged, () => shared.knownKeys.forgetAll()),
      await shared.refusedMail.listen(engine.signals),
    )
    await app
      .listen({ port: settings.httpPort, host: settings.httpHost, backlog: BACKLOG })
      .catch((error: unknown) => {
        throw listenError(error, { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_HTTP_PORT' })
      })
    const { port } = app.getHttpServer().address() as AddressInfo
    shared.countedUpTo?.sampling.start()
    logger.debug({ routes: shared.methods.routes }, 'accepting requests')
    localUrl = `http://${urlHost(settings.httpHost)}:${port}`
    if (url === '') url = localUrl
    return {
      url,
      port,
      async createConsoleLink(accountId) {
        const keys = await shared.views.accounts.activeKeys(accountId)
        const key = keys.find(({ scopes }) => scopes.includes('admin'))
        if (key === undefined) return null
        const creator = { accountId, keyId: key.id, environment: key.environment, ...KEY_ALONE }
        const { secret } = await app.get(ConsoleSessions).createLink(creator, null, RANDOM_MINTING)
        return app.get(ConsoleAddress).linkWith(secret)
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** A host in a URL: IPv6 in brackets (RFC 3986, section 3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
