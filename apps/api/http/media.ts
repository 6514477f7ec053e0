import { Injectable, SetMetadata, type CanActivate, type ExecutionContext } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import accepts from 'accepts'
import type { FastifyRequest } from 'fastify'
import { Problem } from './problems.js'

const PRODUCES = 'produces'
const ANYTHING = '*/*'

/** What the handler answers with, where it is not JSON. */
export function Produces(mediaType: string): MethodDecorator {
  return SetMetadata(PRODUCES, mediaType)
}

/** The handler's answer has a media type that is known only when it is read. */
export const ProducesAnything = (): MethodDecorator => Produces(ANYTHING)

/** The media type of a handler's answer; null where that is known only when it is read. */
export function producedBy(reflector: Reflector, handler: Handler): string | null {
  const produced = reflector.get<string | undefined>(PRODUCES, handler) ?? 'application/json'
  return produced === ANYTHING ? null : produced
}

type Handler = ReturnType<ExecutionContext['getHandler']>

/** Refuses requests whose Accept leaves no form to answer in (RFC 9110, section 12.5.1). */
@Injectable()
export class AcceptGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const produced = producedBy(this.reflector, context.getHandler())
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    if (produced === null || request.headers.accept === undefined) return true
    if (accepts(request.raw).type(produced) !== false) return true
    throw new Problem('not-acceptable', { detail: `The answer is ${produced}.` })
  }
}
