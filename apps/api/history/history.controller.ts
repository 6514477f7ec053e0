import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { EVENT_NAMES } from '#libs/mail/json/event-names.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Principal } from '../access/authenticator.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { Describe } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder, offsetPageOf } from '../http/list-pages.js'
import { Views } from '../http/views.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Event } from './history-schemas.js'

/** The query of GET /v1/inboxes/{id}/history. */
class ListHistory {
  @IsLimit({ most: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'asc'

  @IsCursor('The position to continue from, as in `Link` or `Mayfly-Cursor`.')
  cursor?: string
}

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
      'Every event of the inbox, oldest first by default, without content. Available after the inbox has ended.',
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

/** An event as the contract has it, without content. `partition` is its inbox's. */
function historyJson(entry: HistoryEntry, inboxId: InboxId, partition: number): Static<typeof Event> {
  return {
    id: entry.id,
    type: EVENT_NAMES[entry.type],
    time: entry.time.toISOString(),
    inbox_id: inboxId,
    message_id: entry.messageId,
    key_id: entry.keyId,
    position: { topic: 'inbox-events', partition, offset: entry.offset },
    size: entry.size,
    digest: entry.digest,
  }
}
