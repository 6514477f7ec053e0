import { Readable } from 'node:stream'
import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import { IsOptional, IsString } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Scope } from '#libs/domain/account/access.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import { Doorbell } from '#libs/ports/signals/signals.js'
import { Authenticator, type Principal, Caller, RequireScope } from '../access/authenticator.js'
import { note } from '../http/access-log.js'
import { inboxesPathOf, readOffsetCursor } from '../http/list-pages.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { Produces } from '../http/validation.js'
import { Views } from '../views.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { EventBody } from './event-schemas.js'
import { EventStream, MEDIA_TYPE } from './event-stream.js'
import { InboxFeed } from './inbox-feed.js'
import { OpenStreams } from './open-streams.js'

const READERS: [Scope, Scope] = ['inboxes', 'read']

/** The connection closes with the stream, since an idle connection would delay the shutdown. */
const HEADERS = {
  'content-type': MEDIA_TYPE,
  'x-accel-buffering': 'no',
  connection: 'close',
}

/** The query of GET /v1/inboxes/{id}/events. */
class Listen {
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
    private readonly streams: OpenStreams,
    private readonly authenticator: Authenticator,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @Produces(MEDIA_TYPE)
  @Describe({
    id: 'streamInboxEvents',
    summary: "Stream an inbox's events",
    description:
      'Server-sent events, as they happen. Each has an `event`, which is its type (`message.received`, ' +
      '`message.deleted`, `inbox.expired` or `inbox.deleted`), an `id`, which is a cursor for the position after it and ' +
      'which the client sends as `Last-Event-ID` when it reconnects, and `data`, which is an `EventBody`. A comment is sent ' +
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
    const opened = new DisposableStack()
    const leave = () => opened.dispose()
    try {
      const slot = this.streams.take(principal)
      opened.defer(() => slot.leave())
      const bell = new Doorbell()
      // Before the current position is read: the bell rings for everything after it.
      opened.defer(await this.views.signals.subscribe(inboxChannel(id), () => bell.ring()))
      const { inbox, endOffset } = await this.views.readComplete(id, () => this.inboxes.open(principal, id))
      const from = startOffset(id, request, query) ?? endOffset
      void reply.headers(HEADERS)
      if (request.method === 'HEAD') {
        leave()
        void reply.send(Readable.from([]))
        return
      }
      const authenticate = () => this.authenticator.reauthenticate(request, READERS)
      const listener = { inbox, from, inboxesPath: inboxesPathOf(request), bell, authenticate }
      const stream = new EventStream(
        (signal) => this.feed.chunks(listener, signal),
        () => bell.ring(),
        (outcome) => note(request, { stream: outcome }),
      )
      note(request, { stream: 'client-gone' })
      stream.once('error', (error) => request.log.error({ err: error }, 'a stream failed'))
      stream.once('close', leave)
      const { socket } = request.raw
      slot.watch(stream, socket)
      // A client that has closed its sending side still gets its answer from Node's server, but this answer does not
      // end.
      const hangUp = () => stream.finish('client-gone')
      socket.once('end', hangUp)
      opened.defer(() => socket.off('end', hangUp))
      if (socket.readableEnded) hangUp()
      // If the stream were returned, Nest would wrap it in another one, which does not end with it.
      void reply.send(stream)
    } catch (error) {
      leave()
      throw error
    }
  }
}

/**
 * Null to start now. `Last-Event-ID` takes precedence: a client that reconnects sends the cursor of its first request
 * again.
 */
function startOffset(inboxId: InboxId, { headers }: FastifyRequest, { cursor }: Listen): number | null {
  const start = cursor === undefined ? null : readOffsetCursor(inboxId, cursor).from
  const lastId = headers['last-event-id']
  if (typeof lastId !== 'string' || lastId === '') return start
  return readOffsetCursor(inboxId, lastId, { header: 'Last-Event-ID' }).from
}
