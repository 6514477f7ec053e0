import type { FastifyInstance } from 'fastify'
import createRouter, { type HTTPMethod } from 'find-my-way'

const METHODS: HTTPMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Knows which methods each path takes, for 405 and its `Allow` (RFC 9110, section 15.5.6). */
export class MethodTable {
  /** Each as `<method> <path>`, parameters with a colon. */
  readonly routes: string[] = []
  private readonly router = createRouter()

  /** Notes every route that is registered from now on. */
  watch(server: FastifyInstance): void {
    server.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) {
        const name = METHODS.find((known) => known === each)
        if (name === undefined || this.router.hasRoute(name, url)) continue
        this.router.on(name, url, () => undefined)
        this.routes.push(`${name} ${url}`)
      }
    })
  }

  allowedAt(path: string): string[] {
    return METHODS.filter((method) => this.router.find(method, path) !== null)
  }
}
