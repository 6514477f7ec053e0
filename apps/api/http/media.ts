import { Injectable, SetMetadata, type CanActivate, type ExecutionContext } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import accepts from 'accepts'
import type { FastifyRequest } from 'fastify'
import { Problem } from './problems.js'

const PRODUCES = 'produces'

interface Produced {
  mediaType: string
  /** Those of its Content-Type, which an Accept may name too. */
  parameters: string
}

/** The media type of the handler's answer, if it is not JSON. */
export function Produces(mediaType: string, parameters = 'charset=utf-8'): MethodDecorator {
  return SetMetadata(PRODUCES, { mediaType, parameters } satisfies Produced)
}

/** The handler's answer has a media type that is known only when it is read. */
export const ProducesAnything = (): MethodDecorator => SetMetadata(PRODUCES, null)

/** The media type of a handler's answer; null if that is known only when it is read. */
export function producedBy(reflector: Reflector, handler: Handler): Produced | null {
  const produced = reflector.get<Produced | null | undefined>(PRODUCES, handler)
  return produced === undefined ? { mediaType: 'application/json', parameters: 'charset=utf-8' } : produced
}

type Handler = ReturnType<ExecutionContext['getHandler']>

/** Refuses requests whose Accept excludes the handler's media type (RFC 9110, section 12.5.1). */
@Injectable()
export class AcceptGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const produced = producedBy(this.reflector, context.getHandler())
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    if (produced === null || request.headers.accept === undefined) return true
    const { mediaType, parameters } = produced
    if (accepts(request.raw).type(`${mediaType}; ${parameters}`) !== false) return true
    throw new Problem('not-acceptable', { detail: `The answer is ${mediaType}.` })
  }
}
