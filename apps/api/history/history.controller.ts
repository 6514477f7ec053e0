import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Principal } from '../access/authenticator.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { readMessageCursor, writeMessageCursor } from '../http/cursor.js'
import { Describe } from '../openapi/describe.js'
import { linkNext } from '../http/link.js'
import { Views } from '../http/views.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Event } from './history-schemas.js'
import { historyJson } from './history-json.js'
import { ListHistory } from './list-history.dto.js'

/** Behind every offset. */
const END = Number.MAX_SAFE_INTEGER

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
    const { order, limit } = query
    const { id } = (await this.inboxes.find(principal, inboxId)).inbox
    const { from, to } =
      query.cursor === undefined ? { from: 0, to: null } : readMessageCursor(id, query.cursor)
    const range = { order, from, to: to ?? END, limit: limit + 1 }
    const found = await this.views.inboxes.history({ inboxId: id, ...range })
    // Behind the look: of views that are being rebuilt it is only the beginning.
    await this.views.mustKnow(id)
    const page = found.slice(0, limit)
    const last = page.at(-1)
    if (found.length > limit && last !== undefined) {
      const next = order === 'asc' ? { from: last.offset + 1, to } : { from, to: last.offset }
      linkNext(request, reply, writeMessageCursor(id, { ...next, end: null }))
    }
    const partition = this.views.partitionOf(id)
    return page.map((entry) => historyJson(entry, id, partition))
  }
}
