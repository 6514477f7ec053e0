import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Scope } from '#libs/domain/account/api-key.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { messageJson } from '#libs/mail/json/message-json.js'
import { Authenticator, type Principal } from '../access/authenticator.js'
import { Caller, requireAllowed, NeedsScope } from '../access/scope.guard.js'
import { RequestBudgets } from '../http/budgets.js'
import { familyOf, writeMessageCursor } from '../http/list-pages.js'
import { untilDeparture } from '../http/departure.js'
import { Problem } from '../http/problems.js'
import { Describe } from '../openapi/describe.js'
import { FirstReadings } from './first-readings.js'
import { WaitForMessage } from './list-messages.dto.js'
import { Message } from './message-schemas.js'
import { MessageWait, type Waited } from './message-wait.js'

const READERS: [Scope, Scope] = ['inboxes', 'read']

/** Waiting for mail. Its path is taken before that of a message by its id. */
@Controller(['v1/inboxes/:inboxId/messages/wait', 'v1/emails/:inboxId/messages/wait'])
export class WaitController {
  constructor(
    private readonly waits: MessageWait,
    private readonly authenticator: Authenticator,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
  ) {}

  @Get()
  @NeedsScope(...READERS)
  @Describe({
    id: 'waitForInboxMessage',
    tag: 'Messages',
    summary: 'Wait for a message',
    description:
      'The first one that matches: of those that are there already (after `cursor` where given), oldest first, then of ' +
      'those that come; with `order=desc` the newest that is there. Nothing is consumed: two who wait get the same ' +
      'message. To wait for something that is about to be sent, take a `Mayfly-Cursor` before.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'The message.', schema: Message, headers: ['Mayfly-Cursor'] },
    problems: ['no-matching-message', 'inbox-deleted', 'inbox-expired', 'too-many-waits', 'busy'],
  })
  async wait(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: WaitForMessage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const authenticate = async () => {
      await this.authenticator.authenticate(request)
      requireAllowed(request, READERS)
    }
    const waited = await untilDeparture(request, (departure) =>
      this.waits.first({ principal, inboxId, wanted: query, authenticate }, departure),
    )
    const cursor = writeMessageCursor(waited.inbox.id, { from: waited.position, to: null, end: null })
    if (waited.message === null) throw noMatch(waited, query, cursor)
    await this.budgets.holdAnswer(request, reply, waited.message.bytes)
    this.readings.note(waited.inbox, [waited.message])
    void reply.header('mayfly-cursor', cursor)
    return messageJson(waited.message, familyOf(request))
  }
}

/** Not 408: several HTTP clients silently repeat a request that is answered 408. */
function noMatch({ inbox, examined, nearest }: Waited, query: WaitForMessage, cursor: string): Problem {
  return new Problem('no-matching-message', {
    detail: examined === 0 ? noMail(inbox, query) : `Messages examined without a match: ${examined}.`,
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

function noMail({ createdAt, lastMessageAt }: ActiveInbox, { cursor }: WaitForMessage): string {
  const none = 'No mail has arrived in this inbox since'
  if (lastMessageAt === null) return `${none} it was created at ${createdAt.toISOString()}.`
  const why = cursor === undefined ? 'has been deleted' : 'lies before `cursor` or has been deleted'
  return `${none} the last one at ${lastMessageAt.toISOString()}, which ${why}.`
}
