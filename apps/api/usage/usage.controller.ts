import { Readable } from 'node:stream'
import { Controller, Get, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { SCOPES } from '#libs/domain/account/access.js'
import type { ExportFormat } from '#libs/ports/usage/usage-store.js'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { RequestBudgets } from '../http/budgets.js'
import { NDJSON, ProducesAnything } from '../http/media-types.js'
import { Instance } from '../instance.js'
import { attachmentHeaders } from '../messages/attachment-headers.js'
import { Bytes, Describe, Tag } from '../openapi/describe.js'
import { reportJson, UsageReportSchema, usageRow } from './usage-schemas.js'
import { ExportUsage, ReadReport, ReadUsage } from './usage-parameters.dto.js'
import { MAX_ROWS, Usage } from './usage.service.js'

const MEDIA_TYPE: Readonly<Record<ExportFormat, string>> = {
  parquet: 'application/vnd.apache.parquet',
  ndjson: NDJSON,
  csv: 'text/csv; charset=utf-8',
}

@Controller('v1/usage')
@Tag('Usage')
export class UsageController {
  constructor(
    private readonly usage: Usage,
    private readonly instance: Instance,
    private readonly budgets: RequestBudgets,
  ) {}

  @Get()
  @RequireScope(...SCOPES)
  @Describe({
    summary: 'Read usage by time',
    description:
      'The usage of the calling key, or with the scope `admin` of the whole account. Default: the last 24 hours, by the ' +
      'hour. The figures are about two seconds behind, at most five. Intervals without usage have no row. A request is ' +
      `refused if its answer would have more than ${MAX_ROWS} rows.`,
    answer: { description: 'The rows, by time and then by group.', schema: Type.Array(usageRow.schema) },
    problems: ['busy'],
  })
  async readUsage(@Caller() principal: Principal, @Query() query: ReadUsage, @Req() request: FastifyRequest) {
    const rows = await this.budgets.query(request, () => this.usage.figures(principal, query), 'batches')
    return rows.map(usageRow.encode)
  }

  @Get('report')
  @RequireScope(...SCOPES)
  @Describe({
    summary: 'Read a summary of a load run',
    description:
      'Everything with a label, which inboxes get when they are created: `label=run:42`. The usage of the calling key, or ' +
      'with the scope `admin` of the whole account. Default: the last 90 days. To get the final figures of a run, repeat ' +
      'the request until `counted_up_to` is later than the end of the run.',
    answer: { description: 'The report.', schema: UsageReportSchema },
    problems: ['busy'],
  })
  async reportUsage(
    @Caller() principal: Principal,
    @Query() query: ReadReport,
    @Req() request: FastifyRequest,
  ) {
    return reportJson(await this.budgets.query(request, () => this.usage.report(principal, query), 'batches'))
  }

  @Get('export')
  @RequireScope('admin')
  @ProducesAnything()
  @Describe({
    summary: "Export the account's usage as a file",
    description:
      'Parquet, one JSON object per line, or CSV with a header. Default: the last 24 hours. Figures are in the file if their ' +
      'minute, hour or day starts in the span. Events and figures by route or webhook are kept for 90 days, usage by the ' +
      'minute for 400 days, usage by the hour and by the day without limit.',
    answer: { description: 'The file.', schema: Bytes, headers: ['Content-Disposition'] },
    problems: ['too-many-streams'],
  })
  async exportUsage(
    @Caller() principal: Principal,
    @Query() query: ExportUsage,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const ended = new AbortController()
    reply.raw.once('close', () => ended.abort())
    // If the client has already left, 'close' is not emitted again.
    if (reply.raw.closed || reply.raw.destroyed) ended.abort()
    const file = await this.usage.export(principal, query, ended.signal)
    const { table, format } = query
    // Node closes the connection at the timeout, since nothing listens for it.
    reply.raw.setTimeout(this.instance.settings.streamStallMs)
    void reply
      .headers(attachmentHeaders(`mayfly-${table}.${format}`, 'application/octet-stream'))
      .type(MEDIA_TYPE[format])
      .send(Readable.from(file, { objectMode: false }))
  }
}
