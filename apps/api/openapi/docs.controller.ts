import { Controller, Get, Res, type Type as Class } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { Produces } from '../http/media-types.js'
import { Describe, Tag } from './describe.js'
import { CONTENT_SECURITY_POLICY, docsPage } from './docs-page.js'
import { describeApi } from './document.js'

/** The OpenAPI document as JSON and as a page. It is made at the first request, when the public URL is known. */
export class ApiDocument {
  private cached: { json: string; page: string } | null = null

  constructor(
    private readonly controllers: readonly Class[],
    private readonly publicUrl: () => string,
  ) {}

  read(): { json: string; page: string } {
    if (this.cached === null) {
      const document = describeApi(this.controllers, this.publicUrl())
      this.cached = { json: JSON.stringify(document), page: docsPage(document) }
    }
    return this.cached
  }
}

/** Serves the OpenAPI document. */
@Controller()
@Tag('Operations')
export class DocsController {
  constructor(private readonly api: ApiDocument) {}

  @Get('openapi.json')
  @Describe({
    id: 'getOpenApi',
    summary: 'Read this document',
    answer: { description: 'OpenAPI 3.1.', schema: Type.Object({}, { description: 'An OpenAPI document.' }) },
  })
  openApi(@Res({ passthrough: true }) reply: FastifyReply) {
    void reply.type('application/json; charset=utf-8')
    return this.api.read().json
  }

  @Get('docs')
  @Produces('text/html')
  @Describe({
    id: 'getDocs',
    summary: 'Read this document in a browser',
    description: 'One page without scripts or other resources.',
    answer: { description: 'A page.', schema: Type.String() },
  })
  docs(@Res({ passthrough: true }) reply: FastifyReply) {
    void reply.type('text/html; charset=utf-8').header('content-security-policy', CONTENT_SECURITY_POLICY)
    return this.api.read().page
  }
}
