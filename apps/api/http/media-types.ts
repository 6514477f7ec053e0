import { Injectable, SetMetadata, type CanActivate, type ExecutionContext } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { Problem } from './problems.js'

/*
 * The media type of each handler's answer, and `Accept`.
 */

const PRODUCES = 'produces'

interface Produced {
  mediaType: string
  /** Another media type that the client may choose by `Accept`; null if there is none. */
  alternative: string | null
  /** The parameters of its Content-Type. `Accept` may have them too. */
  parameters: string
}

const JSON_ANSWER: Produced = {
  mediaType: 'application/json',
  parameters: 'charset=utf-8',
  alternative: null,
}

/** The media type of the handler's answer, if it is not JSON. */
export function Produces(mediaType: string, parameters = 'charset=utf-8'): MethodDecorator {
  return SetMetadata(PRODUCES, { mediaType, parameters, alternative: null } satisfies Produced)
}

export const NDJSON = 'application/x-ndjson'

/** The handler's answer is JSON, or one JSON object per line if `prefersLines`. */
export const ProducesLines = (): MethodDecorator =>
  SetMetadata(PRODUCES, { ...JSON_ANSWER, alternative: NDJSON } satisfies Produced)

export function prefersLines({ raw }: FastifyRequest): boolean {
  return new Negotiator(raw).mediaType([JSON_ANSWER.mediaType, NDJSON]) === NDJSON
}

/** The media type of the handler's answer is known only when the content is read. */
export const ProducesAnything = (): MethodDecorator => SetMetadata(PRODUCES, null)

/** The media type of a handler's answer; null if it is known only when the content is read. */
export function producedBy(reflector: Reflector, handler: Handler): Produced | null {
  const produced = reflector.get<Produced | null | undefined>(PRODUCES, handler)
  return produced === undefined ? JSON_ANSWER : produced
}

type Handler = ReturnType<ExecutionContext['getHandler']>

/**
 * Refuses requests whose Accept excludes the handler's media type (RFC 9110, section 12.5.1). Sets the `Content-Type` of
 * an answer that is not JSON.
 */
@Injectable()
export class AcceptGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const produced = producedBy(this.reflector, context.getHandler())
    if (produced === null) return true
    const http = context.switchToHttp()
    const request = http.getRequest<FastifyRequest>()
    const { accept = '' } = request.headers
    const { mediaType, parameters, alternative } = produced
    const contentType = `${mediaType}; ${parameters}`
    const offered = [contentType, ...(alternative === null ? [] : [alternative])]
    if (accept === '' || new Negotiator(request.raw).mediaType(offered) !== undefined) {
      if (mediaType !== JSON_ANSWER.mediaType) void http.getResponse<FastifyReply>().type(contentType)
      return true
    }
    const either = alternative === null ? mediaType : `${mediaType} or ${alternative}`
    throw new Problem('not-acceptable', { detail: `The answer is ${either}.` })
  }
}
