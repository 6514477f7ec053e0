import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import { IsOptional, IsString } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'
import { inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import { AcceptInboxTokens, type Principal, Caller, READERS, RequireScope } from '../access/principal.js'
import { inboxesPathOf, readOffsetCursor } from '../http/list-pages.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { Produces } from '../http/media-types.js'
import { Views } from '../views.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { EventBody } from './event-schemas.js'
import { MEDIA_TYPE } from './event-stream.js'
import { InboxFeed } from './inbox-feed.js'
import { lastEventIdOf, StreamAnswers } from './stream-answers.js'

const NAMES = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(
  SENT_EVENTS.map(({ publicName }) => `\`${publicName}\``),
)

/** The query of GET /v1/inboxes/{id}/events. */
export class Listen {
  @DescribeProperty(
    'The position to start from, a `Mayfly-Cursor`. Default: now. `Last-Event-ID` takes precedence.',
  )
  @IsOptional()
  @IsString({ message: 'cursor must be sent once' })
  cursor?: string
}

/** Streams the events of an inbox, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/events', 'v1/emails/:inboxId/events'])
@Tag('Messages')
export class EventsController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly feed: InboxFeed,
    private readonly answers: StreamAnswers,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @AcceptInboxTokens()
  @Produces(MEDIA_TYPE)
  @Describe({
    id: 'streamInboxEvents',
    summary: "Stream an inbox's events",
    description:
      `Server-sent events, as they happen. Each has an \`event\`, which is its type (${NAMES}), ` +
      'an `id`, which is a cursor for the position after it and which the client sends as `Last-Event-ID` when it ' +
      'reconnects, and `data`, which is an `EventBody`. A comment is sent ' +
      'every 15 seconds. The stream ends after the inbox has ended.',
    requestHeaders: ['Mayfly-Inbox-Password', 'Last-Event-ID'],
    answer: {
      description: 'The stream. The `data` of each event is an `EventBody` as JSON in one line.',
      schema: EventBody,
    },
    problems: ['inbox-deleted', 'inbox-expired', 'too-many-streams'],
  })
  async listen(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: Listen,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id } = (await this.inboxes.openContent(principal, inboxId)).inbox
    await this.answers.send(reply, inboxChannel(id), async (client) => {
      const { inbox, endOffset } = await this.views.readComplete(id, () => this.inboxes.open(principal, id))
      const from = startOffset(id, request, query) ?? endOffset
      const listener = { ...client, inbox, from, inboxesPath: inboxesPathOf(request) }
      return (signal) => this.feed.chunks(listener, signal)
    })
  }
}

/** Null to start now. */
function startOffset(inboxId: InboxId, request: FastifyRequest, { cursor }: Listen): number | null {
  const start = cursor === undefined ? null : readOffsetCursor(inboxId, cursor).from
  const lastId = lastEventIdOf(request)
  return lastId === null ? start : readOffsetCursor(inboxId, lastId, { header: 'Last-Event-ID' }).from
}
