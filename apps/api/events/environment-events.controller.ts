import { Controller, Get, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { environmentChannel } from '#libs/ports/read-model/consistent-views.js'
import { Caller, READERS, RequireScope, type Principal } from '../access/principal.js'
import { Produces } from '../http/media-types.js'
import { readLabels } from '../inboxes/inbox-requests.dto.js'
import { readEnvironmentCursor } from '../messages/environment-cursor.js'
import { IsLabelOfInbox } from '../messages/message-filters.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { EnvironmentFeed } from './environment-feed.js'
import { EventBody } from './event-schemas.js'
import { MEDIA_TYPE } from './event-stream.js'
import { Listen } from './events.controller.js'
import { lastEventIdOf, StreamAnswers } from './stream-answers.js'

/** The query of GET /v1/events. */
class ListenToEnvironment extends Listen {
  @IsLabelOfInbox()
  label?: string[]
}

/** Streams the events of all inboxes of the key's environment. */
@Controller('v1/events')
@Tag('Messages')
export class EnvironmentEventsController {
  constructor(
    private readonly views: Views,
    private readonly feed: EnvironmentFeed,
    private readonly answers: StreamAnswers,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @Produces(MEDIA_TYPE)
  @Describe({
    id: 'streamEvents',
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
  async listen(
    @Caller() principal: Principal,
    @Query() query: ListenToEnvironment,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.answers.send(reply, environmentChannel(principal), async (client) => {
      const ends = await this.views.readComplete('inbox-events', () => this.views.endOffsets())
      const from = this.startOffsets(principal, request, query) ?? ends
      const { environment } = principal
      const listener = { ...client, environment, labels: readLabels(query.label), from }
      return (signal) => this.feed.chunks(listener, signal)
    })
  }

  /** Null to start now. */
  private startOffsets(principal: Principal, request: FastifyRequest, { cursor }: Listen) {
    const partitions = this.views.partitionCount()
    const start = cursor === undefined ? null : readEnvironmentCursor(principal, partitions, cursor).from
    const lastId = lastEventIdOf(request)
    if (lastId === null) return start
    return readEnvironmentCursor(principal, partitions, lastId, { header: 'Last-Event-ID' }).from
  }
}
