import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Principal } from '../access/authenticator.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { Describe } from '../openapi/describe.js'
import { offsetPageOf } from '../http/offset-page.js'
import { Views } from '../http/views.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Event } from './history-schemas.js'
import { historyJson } from './history-json.js'
import { ListHistory } from './list-history.dto.js'

/** What has happened to an inbox, also after its end, without content. Both families of paths come here. */
@Controller(['v1/inboxes/:inboxId/history', 'v1/emails/:inboxId/history'])
export class HistoryController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
  ) {}

  @Get()
  @NeedsScope('audit', 'inboxes', 'read')
  @Describe({
    id: 'listInboxHistory',
    tag: 'Inboxes',
    summary: "List an inbox's history",
    description:
      'Every event of it, oldest first unless said otherwise, without content; also after its end.',
    answer: { description: 'A page of events.', schema: Type.Array(Event), headers: ['Link'] },
  })
  async list(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListHistory,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { id } = (await this.inboxes.find(principal, inboxId)).inbox
    const page = await offsetPageOf(id, query, { request, reply }, (range) =>
      this.views.readComplete(id, () => this.views.inboxes.history({ inboxId: id, ...range })),
    )
    const partition = this.views.partitionOf(id)
    return page.map((entry) => historyJson(entry, id, partition))
  }
}
