import { Controller, Get, Param, Query, Res } from '@nestjs/common'
import { IsOptional, IsString } from 'class-validator'
import type { FastifyReply } from 'fastify'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'
import { environmentChannel, inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import { AcceptInboxTokens, type Principal, Caller, READERS, RequireScope } from '../access/principal.js'
import { inboxesPathOf, readOffsetCursor } from '../http/list-pages.js'
import { Produces } from '../http/media-types.js'
import type { Location } from '../http/problems.js'
import { readLabels } from '../inboxes/inbox-requests.dto.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { readEnvironmentCursor } from '../messages/environment-cursor.js'
import { IsLabelOfInbox } from '../messages/message-filters.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { EnvironmentFeed } from './environment-feed.js'
import { EventData } from './event-data.js'
import { EventBody } from './event-schemas.js'
import { EventStreams, MEDIA_TYPE } from './event-streams.js'
import { InboxFeed } from './inbox-feed.js'

const NAMES = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(
  SENT_EVENTS.map(({ publicName }) => `\`${publicName}\``),
)

/** The query of GET /v1/inboxes/{id}/events. */
class Listen {
  @DescribeProperty(
    'The position to start from, a `Mayfly-Cursor`. Default: now. `Last-Event-ID` takes precedence.',
  )
  @IsOptional()
  @IsString({ message: 'cursor must be sent once' })
  cursor?: string
}

/** The query of GET /v1/events. */
class ListenToEnvironment extends Listen {
  @IsLabelOfInbox()
  label?: string[]
}

/** Streams the events of an inbox, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/events', 'v1/emails/:inboxId/events'])
@Tag('Messages')
export class EventsController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly events: EventData,
    private readonly streams: EventStreams,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @AcceptInboxTokens()
  @Produces(MEDIA_TYPE)
  @Describe({
    summary: "Stream an inbox's events",
    description:
      `Server-sent events, as they happen. Each has an \`event\`, which is its type (${NAMES}), ` +
      'an `id`, which is a cursor for the position after it and which the client sends as `Last-Event-ID` when it ' +
      'reconnects, and `data`, which is an `EventBody`. A comment is sent ' +
      'every 15 seconds. The stream ends after the inbox has ended.',
    requestHeaders: ['Last-Event-ID'],
    answer: {
      description: 'The stream. The `data` of each event is an `EventBody` as JSON in one line.',
      schema: EventBody,
    },
    problems: ['inbox-deleted', 'inbox-expired', 'too-many-streams'],
  })
  async streamInboxEvents(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: Listen,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id } = (await this.inboxes.openContent(principal, inboxId)).inbox
    await this.streams.send(reply, inboxChannel(id), async () => {
      const { inbox, endOffset } = await this.views.readComplete(id, () => this.inboxes.open(principal, id))
      const from = startOf(reply, query, (...cursor) => readOffsetCursor(id, ...cursor).from)
      return new InboxFeed(this.events, inbox, from ?? endOffset, inboxesPathOf(reply.request))
    })
  }
}

/** Streams the events of all inboxes of the key's environment. */
@Controller('v1/events')
@Tag('Messages')
export class EnvironmentEventsController {
  constructor(
    private readonly views: Views,
    private readonly events: EventData,
    private readonly streams: EventStreams,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @Produces(MEDIA_TYPE)
  @Describe({
    summary: 'Stream the events of all inboxes',
    description:
      "Server-sent events of the inboxes of the key's environment, as they happen, without those of protected inboxes. " +
      'They are as in the stream of an inbox; the events of one inbox are in order. The `id` of an event is a ' +
      '`Mayfly-Cursor` of `GET /v1/messages`. The stream does not end.',
    requestHeaders: ['Last-Event-ID'],
    answer: {
      description: 'The stream. The `data` of each event is an `EventBody` as JSON in one line.',
      schema: EventBody,
    },
    problems: ['too-many-streams'],
  })
  async streamEvents(
    @Caller() principal: Principal,
    @Query() query: ListenToEnvironment,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.streams.send(reply, environmentChannel(principal), async () => {
      const ends = await this.views.readComplete('inbox-events', () => this.views.endOffsets())
      const partitions = this.views.partitionCount()
      const from = startOf(
        reply,
        query,
        (...cursor) => readEnvironmentCursor(principal, partitions, ...cursor).from,
      )
      return new EnvironmentFeed(this.events, principal, readLabels(query.label), from ?? ends)
    })
  }
}

/**
 * The position to start from; null to start now. `Last-Event-ID` takes precedence: a client that reconnects sends the
 * cursor of its first request again.
 */
function startOf<Position>(
  { request: { headers } }: FastifyReply,
  { cursor }: Listen,
  read: (text: string, location?: Location) => Position,
): Position | null {
  const start = cursor === undefined ? null : read(cursor)
  const lastId = headers['last-event-id']
  return typeof lastId === 'string' && lastId !== '' ? read(lastId, { header: 'Last-Event-ID' }) : start
}
