import { Controller, Get, Query, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { Produces } from '../http/media.js'
import { NoParameters } from '../http/no-parameters.dto.js'
import { ApiDocument } from './api-document.js'
import { Describe } from './describe.js'
import { CONTENT_SECURITY_POLICY } from './docs-page.js'

/** What the API says of itself. */
@Controller()
export class DocsController {
  constructor(private readonly api: ApiDocument) {}

  @Get('openapi.json')
  @Describe({
    id: 'getOpenApi',
    tag: 'Operations',
    summary: 'This document',
    answer: { description: 'OpenAPI 3.1.', schema: Type.Object({}, { description: 'An OpenAPI document.' }) },
  })
  openApi(@Query() _query: NoParameters, @Res({ passthrough: true }) reply: FastifyReply) {
    void reply.type('application/json; charset=utf-8')
    return this.api.json
  }

  @Get('docs')
  @Produces('text/html')
  @Describe({
    id: 'getDocs',
    tag: 'Operations',
    summary: 'This document, to be read in a browser',
    description: 'One page without scripts, which loads nothing else.',
    answer: { description: 'A page.', schema: Type.String() },
  })
  docs(@Query() _query: NoParameters, @Res({ passthrough: true }) reply: FastifyReply) {
    void reply.type('text/html; charset=utf-8').header('content-security-policy', CONTENT_SECURITY_POLICY)
    return this.api.page
  }
}
