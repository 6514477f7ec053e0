import type { CanActivate, ExecutionContext } from '@nestjs/common'
import type { FastifyRequest } from 'fastify'
import { pathOf } from './link.js'
import { methodNotAllowed, type MethodTable } from './method-table.js'

/** Refuses a method that a path's narrowest route does not take, though a wider one would. */
export class MethodGuard implements CanActivate {
  constructor(private readonly methods: MethodTable) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    if (!this.methods.mayBeNarrower(request.routeOptions.url)) return true
    const allowed = this.methods.allowedAt(pathOf(request))
    const isOther = allowed.length > 0 && !allowed.includes(request.method)
    if (isOther) throw methodNotAllowed(request.method, allowed)
    return true
  }
}
