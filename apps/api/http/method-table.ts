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
  /** The segments of each path of a route. Parameters have a colon in front. */
  private readonly paths = new Map<string, string[]>()
  /** Paths whose requests may also match a more specific path: `/messages/:id`, because of `/messages/wait`. */
  private readonly general = new Set<string>()

  /** Records every route that is registered after this call. */
  watch(server: FastifyInstance): void {
    server.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) {
        const name = METHODS.find((known) => known === each)
        if (name === undefined || this.router.hasRoute(name, url)) continue
        this.router.on(name, url, () => undefined, url)
        this.routes.push(`${name} ${routeTemplate(url)}`)
        const segments = url.split('/')
        for (const [path, others] of this.paths) {
          if (isMoreSpecific(segments, others)) this.general.add(path)
          if (isMoreSpecific(others, segments)) this.general.add(url)
        }
        this.paths.set(url, segments)
      }
    })
  }

  /** Whether requests to this route may also match a more specific route without their method. */
  mayMatchMoreSpecific(url: string | undefined): boolean {
    return url !== undefined && this.general.has(url)
  }

  /**
   * The methods that a path supports. If several routes match, such as `/messages/wait` and `/messages/:id`, the
   * methods of the most specific one.
   */
  allowedAt(path: string): string[] {
    const routes = METHODS.flatMap((method) => {
      const found = this.router.find(method, path)
      return found === null ? [] : [{ method, parameters: parameterCount(String(found.store).split('/')) }]
    })
    const fewest = Math.min(...routes.map(({ parameters }) => parameters))
    return routes.filter(({ parameters }) => parameters === fewest).map(({ method }) => method)
  }
}

/** `/messages/wait` is more specific than `/messages/:id`. */
function isMoreSpecific(path: string[], general: string[]): boolean {
  return (
    path.length === general.length &&
    general.every((segment, index) => isParameter(segment) || segment === path[index]) &&
    parameterCount(path) < parameterCount(general)
  )
}

function parameterCount(path: string[]): number {
  return path.filter(isParameter).length
}

function isParameter(segment: string): boolean {
  return segment.startsWith(':')
}

/** The 405 and its `Allow`. */
export function methodNotAllowed(method: string, allowed: readonly string[]): Problem {
  const detail = `${method} is not supported here. Supported methods: ${allowed.join(', ')}.`
  return new Problem('method-not-allowed', { detail, headers: { allow: allowed.join(', ') } })
}

/** Refuses a method that only a less specific route of the path supports. */
export class MethodGuard implements CanActivate {
  constructor(private readonly methods: MethodTable) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    if (!this.methods.mayMatchMoreSpecific(request.routeOptions.url)) return true
    const allowed = this.methods.allowedAt(pathOf(request))
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
