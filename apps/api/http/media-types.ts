import { Injectable, SetMetadata, type CanActivate, type ExecutionContext } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { Problem } from './problems.js'

/*
 * The media type of each handler's answer, and `Accept`.
 */

const PRODUCES = 'produces'
const JSON_TYPE = 'application/json'
export const NDJSON = 'application/x-ndjson'
export const BYTES = 'application/octet-stream'

/** The media type of the handler's answer, if it is not JSON. Without parameters, it gets `charset=utf-8`, unless it is BYTES. */
export function Produces(mediaType: string): MethodDecorator {
  return SetMetadata(PRODUCES, [mediaType])
}

/** The handler's answer is JSON, or one JSON object per line if `prefersLines`. */
export const ProducesLines = (): MethodDecorator => SetMetadata(PRODUCES, [JSON_TYPE, NDJSON])

export function prefersLines({ raw }: FastifyRequest): boolean {
  return new Negotiator(raw).mediaType([JSON_TYPE, NDJSON]) === NDJSON
}

/** The media type of the handler's answer is known only when the content is read. */
export const ProducesAnything = (): MethodDecorator => SetMetadata(PRODUCES, [])

/** The media types of a handler's answer, the usual one first; none if they are known only when the content is read. */
function contentTypesOf(reflector: Reflector, handler: Handler): string[] {
  const produced = reflector.get<string[] | undefined>(PRODUCES, handler) ?? [JSON_TYPE]
  return produced.map((type) => (type.includes(';') || type === BYTES ? type : `${type}; charset=utf-8`))
}

/** As `contentTypesOf`, without parameters. */
export function mediaTypesOf(reflector: Reflector, handler: Handler): string[] {
  return contentTypesOf(reflector, handler).map((type) => type.replace(/;.*/, ''))
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
    const offered = contentTypesOf(this.reflector, context.getHandler())
    const [usual] = offered
    if (usual === undefined) return true
    const http = context.switchToHttp()
    const request = http.getRequest<FastifyRequest>()
    const { accept = '' } = request.headers
    if (accept !== '' && new Negotiator(request.raw).mediaType(offered) === undefined) {
      const names = mediaTypesOf(this.reflector, context.getHandler())
      throw new Problem('not-acceptable', { detail: `The answer is ${names.join(' or ')}.` })
    }
    if (!usual.startsWith(JSON_TYPE)) void http.getResponse<FastifyReply>().type(usual)
    return true
  }
}
