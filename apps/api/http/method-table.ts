import type { FastifyInstance, FastifyRequest } from 'fastify'
import createRouter, { type HTTPMethod } from 'find-my-way'
import type { CanActivate, ExecutionContext } from '@nestjs/common'
import { Problem } from './problems.js'
import { pathOf } from './list-pages.js'

const METHODS: HTTPMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Any length that the limit of headers permits: an id that is too long is answered as an unknown one. */
export const MAX_PARAM_CHARACTERS = 1 << 16

/** Knows which methods each path takes, for 405 and its `Allow` (RFC 9110, section 15.5.6). */
export class MethodTable {
  /** Each as `<method> <path>`, as `routeTemplate` spells the path. */
  readonly routes: string[] = []
  private readonly router = createRouter({ maxParamLength: MAX_PARAM_CHARACTERS })
  /** Paths of routes, parameters with a colon. */
  private readonly paths = new Set<string>()
  /** Those of them whose requests may match a narrower path too: `/messages/:id`, with `/messages/wait`. */
  private readonly wider = new Set<string>()

  /** Records every route that is registered from now on. */
  watch(server: FastifyInstance): void {
    server.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) {
        const name = METHODS.find((known) => known === each)
        if (name === undefined || this.router.hasRoute(name, url)) continue
        this.router.on(name, url, () => undefined, url)
        this.routes.push(`${name} ${routeTemplate(url)}`)
        for (const other of this.paths) {
          if (isNarrower(url, other)) this.wider.add(other)
          if (isNarrower(other, url)) this.wider.add(url)
        }
        this.paths.add(url)
      }
    })
  }

  /** Whether requests to this route may match a narrower one too, which does not take their method. */
  mayBeNarrower(url: string | undefined): boolean {
    return url !== undefined && this.wider.has(url)
  }

  /**
   * The methods that a path takes. If several routes match it, such as `/messages/wait` and `/messages/:id`, those of
   * the narrowest one.
   */
  allowedAt(path: string): string[] {
    const routes = METHODS.flatMap((method) => {
      const found = this.router.find(method, path)
      return found === null ? [] : [{ method, url: String(found.store) }]
    })
    const narrowest = Math.min(...routes.map(({ url }) => parametersOf(url)))
    return routes.filter(({ url }) => parametersOf(url) === narrowest).map(({ method }) => method)
  }
}

/** `/messages/wait` is narrower than `/messages/:id`. */
function isNarrower(url: string, other: string): boolean {
  const [segments, wider] = [url.split('/'), other.split('/')]
  const fits = wider.every((segment, index) => segment.startsWith(':') || segment === segments[index])
  return segments.length === wider.length && fits && parametersOf(url) < parametersOf(other)
}

function parametersOf(url: string): number {
  return url.split(':').length
}

/** The 405 and its `Allow`. */
export function methodNotAllowed(method: string, allowed: readonly string[]): Problem {
  const detail = `${method} is not taken here, only ${allowed.join(', ')}.`
  return new Problem('method-not-allowed', { detail, headers: { allow: allowed.join(', ') } })
}

/** Refuses a method that a path's narrowest route does not take, though a wider one would. */
export class MethodGuard implements CanActivate {
  constructor(private readonly methods: MethodTable) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    if (!this.methods.mayBeNarrower(request.routeOptions.url)) return true
    const allowed = this.methods.allowedAt(pathOf(request))
    if (allowed.length === 0 || allowed.includes(request.method)) return true
    throw methodNotAllowed(request.method, allowed)
  }
}

/**
 * A route as the contract spells it, from the path that it is registered under: `/v1/inboxes/:inboxId/messages/:messageId`
 * is `/v1/inboxes/{id}/messages/{message_id}`. The first id of a path is `id`, each further one is named for its resource.
 */
export function routeTemplate(path: string): string {
  let ids = 0
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    if (!name.endsWith('Id')) return `{${name}}`
    ids += 1
    return ids === 1 ? '{id}' : `{${name.slice(0, -2)}_id}`
  })
}
