import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../access/authenticator.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { writeMessageCursor } from '../http/cursor.js'
import { untilDeparture } from '../http/departure.js'
import { familyOf } from '../http/link.js'
import { Problem } from '../http/problems.js'
import { WaitForMessage } from './list-messages.dto.js'
import { messageJson } from './message-json.js'
import { MessageWait, type Waited } from './message-wait.js'

/** Waiting for mail. Its path is taken before that of a message by its id. */
@Controller(['v1/inboxes/:inboxId/messages/wait', 'v1/emails/:inboxId/messages/wait'])
export class WaitController {
  constructor(private readonly waits: MessageWait) {}

  @Get()
  @NeedsScope('inboxes', 'read')
  async wait(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: WaitForMessage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const waited = await untilDeparture(request, (departure) =>
      this.waits.first(principal, inboxId, query, departure),
    )
    const cursor = writeMessageCursor(waited.inbox.id, { from: waited.position, to: null, end: null })
    if (waited.message === null) throw noMatch(waited, query, cursor)
    void reply.header('mayfly-cursor', cursor)
    return messageJson(waited.message, familyOf(request))
  }
}

/** Not 408, which several HTTP clients answer by sending the request again, unseen. */
function noMatch({ examined, nearest }: Waited, { timeout }: WaitForMessage, cursor: string): Problem {
  return new Problem('no-matching-message', {
    detail: `No message matched within ${timeout} s; ${examined} did not match.`,
    headers: { 'mayfly-cursor': cursor },
    members: {
      examined,
      nearest: nearest.map(({ id, subject, receivedAt, mismatches }) => ({
        id,
        subject,
        received_at: receivedAt.toISOString(),
        mismatches,
      })),
      cursor,
    },
  })
}
