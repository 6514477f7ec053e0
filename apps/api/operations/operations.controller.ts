import { Controller, Get, Inject, Param, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import type { Engine } from '#libs/engines/engine.js'
import { measureBacklog } from '#libs/ports/read-model/consistent-views.js'
import { BUILD_INFO, engineName } from '#libs/runtime/process/build-info.js'
import { MetricsText } from '#libs/runtime/process/metrics.js'
import { sendDocs } from '../console/console-files.js'
import { Count, Describe, Tag } from '../openapi/describe.js'
import { ApiDocument } from '../openapi/document.js'
import { inline } from '../http/html.js'
import { Produces } from '../http/media-types.js'
import { sendPrepared } from '../http/prepared-answers.js'
import { notFound, PROBLEM_CODES, type ProblemCode, PROBLEMS, unavailable } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { Views } from '../views.js'

const PREPARED =
  'It is compressed if the client accepts that. With its `ETag` in `If-None-Match`, the answer is 304.'

/** For operators of Mayfly. No key is required. */
@Controller()
@Tag('Operations')
export class OperationsController {
  constructor(
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'log' | 'disk'>,
    private readonly metricsText: MetricsText,
    private readonly views: Views,
    private readonly instance: Instance,
    private readonly api: ApiDocument,
  ) {}

  @Get('version')
  @Describe({
    summary: 'Read the version',
    answer: {
      description: 'The build and its engine.',
      schema: Type.Object(
        {
          version: Type.String({ examples: ['0.1.0'] }),
          commit: Type.Union([Type.String(), Type.Null()], {
            description: 'The git commit that it was built from; null if it is unknown.',
          }),
          engine: Type.Union([Type.Literal('embedded'), Type.Literal('distributed')]),
        },
        { $id: 'Version', description: 'The build and engine of this server.' },
      ),
    },
  })
  getVersion() {
    return { ...BUILD_INFO, engine: engineName(this.instance.settings) }
  }

  @Get('healthz')
  @Describe({
    summary: 'Check that the process is alive',
    answer: { description: 'The process is alive.', schema: Type.Object({ status: Type.Literal('ok') }) },
  })
  getHealth() {
    return { status: 'ok' }
  }

  @Get('readyz')
  @Describe({
    summary: 'Check that the instance is ready',
    answer: {
      description: 'The instance is ready.',
      schema: Type.Object({
        status: Type.Literal('ready'),
        backlog: Count('Records on the log that the views do not show yet.'),
        disk: Type.Optional(
          Type.Union([Type.Literal('ok'), Type.Literal('full')], {
            description:
              'Embedded engine: `full` if mail and changes are refused. Reading and deleting still work, so the status is 200.',
          }),
        ),
      }),
    },
    problems: ['catching-up', 'log-unavailable', 'read-model-unavailable'],
  })
  async getReadiness() {
    const { records: backlog, isCatchingUp } = await measureBacklog(this.engine.log, this.views.inboxes)
    if (!this.instance.isStarted()) throw unavailable('catching-up', 'This instance is starting.')
    if (isCatchingUp) throw unavailable('catching-up', `The views are ${backlog} records behind the log.`)
    const { disk } = this.engine
    return { status: 'ready', backlog, ...(disk === null ? {} : { disk: await disk.state() }) }
  }

  @Get('metrics')
  @Produces('text/plain; version=0.0.4; charset=utf-8')
  @Describe({
    summary: 'Read metrics for Prometheus',
    description:
      'If `MAYFLY_METRICS_PORT` is set, metrics are served on that port, and this path answers 404.',
    answer: { description: 'The text format of Prometheus.', schema: Type.String() },
    problems: ['not-found'],
  })
  async getMetrics() {
    if (this.instance.settings.metricsPort !== null) throw notFound('The metrics are served on another port.')
    return this.metricsText.read()
  }

  @Get('problems/:code')
  @Produces('text/html')
  @Describe({
    summary: 'Read what a problem means and how to fix it',
    description: 'The `type` of each problem is the URL of its page.',
    answer: { description: 'A page.', schema: Type.String() },
  })
  getProblemPage(@Param('code') code: string) {
    const known = PROBLEM_CODES.find((name) => name === code)
    if (known === undefined) throw notFound('There is no problem with that code.')
    return problemPage(known)
  }

  @Get('openapi.json')
  @Describe({
    summary: 'Read this document',
    description: PREPARED,
    answer: {
      description: 'OpenAPI 3.1.',
      schema: Type.Object({}, { description: 'An OpenAPI document.' }),
      headers: ['ETag'],
    },
  })
  async getOpenApi(@Res() reply: FastifyReply): Promise<void> {
    await sendPrepared(reply.type('application/json; charset=utf-8'), await this.api.read())
  }

  @Get('docs')
  @Produces('text/html')
  @Describe({
    summary: 'Read this document in a browser',
    description: `A page that lists and searches the operations, and sends requests. ${PREPARED}`,
    answer: { description: 'A page.', schema: Type.String(), headers: ['ETag'] },
  })
  async getDocs(@Res() reply: FastifyReply): Promise<void> {
    await sendDocs(reply)
  }
}

/** The page at the URL in a problem's `type`. */
function problemPage(code: ProblemCode): string {
  const { status, title, fix } = PROBLEMS[code]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${code}: ${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}code{font-size:1.1em}</style>
<h1>${title}</h1>
<p><code>${code}</code>, status ${status}</p>
<h2>What to do</h2>
<p>${inline(fix)}</p>
</html>
`
}
