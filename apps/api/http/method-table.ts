import type { FastifyInstance, FastifyRequest } from 'fastify'
import createRouter, { type HTTPMethod } from 'find-my-way'
import type { CanActivate, ExecutionContext } from '@nestjs/common'
import { Problem } from './problems.js'
import { pathOf } from './list-pages.js'

const METHODS: HTTPMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** The limit of headers applies instead: an id that is too long is answered like an unknown one. */
export const MAX_PARAM_CHARACTERS = 1 << 16

/** The methods of each path, for 405 and its `Allow` (RFC 9110, section 15.5.6). */
export class MethodTable {
  /** Each is `<method> <path>`, with the path as in `routeTemplate`. */
  readonly routes: string[] = []
  private readonly router = createRouter({ maxParamLength: MAX_PARAM_CHARACTERS })
  private readonly lastSegments = new Set<string>()

  /** Records every route that is registered after this call. */
  watch(server: FastifyInstance): void {
    server.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) {
        const name = METHODS.find((known) => known === each)
        if (name === undefined || this.router.hasRoute(name, url)) continue
        this.router.on(name, url, () => undefined, url)
        this.routes.push(`${name} ${routeTemplate(url)}`)
        this.lastSegments.add(lastSegment(url))
      }
    })
  }

  /** Whether a request to `/messages/:id` may be one to another path, such as `/messages/wait`, without its method. */
  mayMatchMoreSpecific(url: string, path: string): boolean {
    return isParameter(lastSegment(url)) && this.lastSegments.has(lastSegment(path))
  }

  /**
   * The methods that a path supports. If several routes match, such as `/messages/wait` and `/messages/:id`, the
   * methods of the most specific one.
   */
  allowedAt(path: string): string[] {
    const routes = METHODS.flatMap((method) => {
      const found = this.router.find(method, path)
      const segments = String(found?.store).split('/')
      return found === null ? [] : [{ method, parameters: segments.filter(isParameter).length }]
    })
    const fewest = Math.min(...routes.map(({ parameters }) => parameters))
    return routes.filter(({ parameters }) => parameters === fewest).map(({ method }) => method)
  }
}

function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function isParameter(segment: string): boolean {
  return segment.startsWith(':')
}

export function methodNotAllowed(method: string, allowed: readonly string[]): Problem {
  const detail = `${method} is not supported here. Supported methods: ${allowed.join(', ')}.`
  return new Problem('method-not-allowed', { detail, headers: { allow: allowed.join(', ') } })
}

/** Refuses a method that only a less specific route of the path supports. */
export class MethodGuard implements CanActivate {
  constructor(private readonly methods: MethodTable) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    const path = pathOf(request)
    if (!this.methods.mayMatchMoreSpecific(request.routeOptions.url ?? '', path)) return true
    const allowed = this.methods.allowedAt(path)
    if (allowed.length === 0 || allowed.includes(request.method)) return true
    throw methodNotAllowed(request.method, allowed)
  }
}

/**
 * The path of a route in the OpenAPI document, from the registered path: `/v1/inboxes/:inboxId/messages/:messageId` is
 * `/v1/inboxes/{id}/messages/{message_id}`. The first id of a path is `id`, each further one is named after its
 * resource.
 */
export function routeTemplate(path: string): string {
  let ids = 0
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    if (!name.endsWith('Id')) return `{${name}}`
    ids += 1
    return ids === 1 ? '{id}' : `{${name.slice(0, -2)}_id}`
  })
}
