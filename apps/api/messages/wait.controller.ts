import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Scope } from '#libs/domain/account/access.js'
import { type InboxId, isId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { messageJson, type OpenedMessage } from '#libs/mail/json/message-json.js'
import { inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import { Authenticator, type Principal, Caller, RequireScope } from '../access/authenticator.js'
import { type MailRead, RequestBudgets, untilClientLeaves } from '../http/budgets.js'
import { inboxesPathOf, readOffsetCursor, writeOffsetCursor } from '../http/list-pages.js'
import { isTransient, Problem } from '../http/problems.js'
import { Views } from '../http/views.js'
import { Inboxes, noInbox, type OpenInbox } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { MessageReader, FirstReadings } from './message-reader.js'
import { WaitForMessage, mismatches, type NearMiss, nearestWith } from './message-filters.js'
import { Message } from './message-schemas.js'
import { type OpenWait, OpenWaits, shuttingDown, tooManyWaits } from './open-waits.js'

const READERS: [Scope, Scope] = ['inboxes', 'read']

/** What a wait has examined so far. */
interface Progress {
  /** How many messages did not match. */
  examined: number
  nearest: readonly NearMiss[]
  /** The first offset that was not examined, or just past the message that matched. */
  position: number
}

interface Waited extends Progress {
  inbox: ActiveInbox
  /** The first that matched; null if none did yet. */
  message: OpenedMessage | null
}

/** A request that waits. */
interface Waiting {
  principal: Principal
  inboxId: InboxId
  wanted: WaitForMessage
  request: FastifyRequest
}

/** A signal may be lost: it looks without one after this time. */
const RELOOK_MS = 10_000
/** The same while the views can't be read. */
const RETRY_MS = 500

/** Waiting for mail. Its path is taken before that of a message by its id. */
@Controller(['v1/inboxes/:inboxId/messages/wait', 'v1/emails/:inboxId/messages/wait'])
@Tag('Messages')
export class WaitController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly reader: MessageReader,
    private readonly instance: Instance,
    private readonly waits: OpenWaits,
    private readonly authenticator: Authenticator,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @Describe({
    id: 'waitForInboxMessage',
    summary: 'Wait for a message',
    description:
      'The first one that matches: of those that are there already (after `cursor` if given), oldest first, then of ' +
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
    if (!isId('inb', inboxId)) throw noInbox(inboxId)
    const waiting = { principal, inboxId, wanted: query, request }
    const waited = await untilClientLeaves(request, (clientGone) =>
      this.waits.run(principal, clientGone, (wait) => this.firstMatch(waiting, wait)),
    )
    const cursor = writeOffsetCursor(waited.inbox.id, { from: waited.position, to: null, end: null })
    if (waited.message === null) throw noMatch(waited, query, cursor)
    await this.budgets.holdAnswer(reply, waited.message.bytes)
    this.readings.note(waited.inbox, [waited.message])
    void reply.header('mayfly-cursor', cursor)
    return messageJson(waited.message, inboxesPathOf(request))
  }

  /**
   * Resolves at the first match, or without one once the timeout is over or the client has left. Throws what opening the
   * inbox throws, also if it ends meanwhile; what `authenticateAgain` throws; shutting-down; too-many-waits; and the error
   * that keeps the inbox from being read, if that lasts until the timeout.
   */
  private async firstMatch(waiting: Waiting, wait: OpenWait): Promise<Waited> {
    const { inboxId } = waiting
    const deadlineMs = performance.now() + waiting.wanted.timeout * 1_000
    let waited: Waited | null = null
    let unsubscribe: (() => void) | null = null
    try {
      for (;;) {
        const seen: Waited | Error = await this.look(waiting, waited, wait).catch(ifTransient)
        if (!(seen instanceof Error)) waited = seen
        if (waited?.message != null) return waited
        if (wait.end === 'shutting-down') throw shuttingDown()
        if (wait.end === 'crowded-out') throw tooManyWaits()
        const leftMs = deadlineMs - performance.now()
        if (leftMs <= 0 || wait.end === 'client-gone') {
          if (seen instanceof Error) throw seen
          return seen
        }
        if (unsubscribe === null) {
          unsubscribe = await this.views.signals.subscribe(inboxChannel(inboxId), () => wait.bell.ring())
          // Something may have come between the look and the subscription.
          continue
        }
        await wait.bell.wait(Math.min(leftMs, seen instanceof Error ? RETRY_MS : this.patienceMs(seen)))
      }
    } finally {
      unsubscribe?.()
    }
  }

  /** No longer than until the inbox expires. */
  private patienceMs({ inbox: { expiresAt } }: Waited): number {
    const toExpiryMs = expiresAt.getTime() - this.instance.now().getTime()
    return Math.min(Math.max(toExpiryMs, 1), RELOOK_MS)
  }

  /** Examines the messages that have not been examined, in views that are complete. */
  private async look(
    { principal, inboxId, wanted, request }: Waiting,
    before: Waited | null,
    wait: OpenWait,
  ): Promise<Waited> {
    // The password is checked once. The key may be revoked at any time.
    if (before === null) await this.inboxes.openContent(principal, inboxId)
    else await this.authenticator.authenticateAgain(request, READERS)
    const position = wanted.cursor === undefined ? 0 : readOffsetCursor(inboxId, wanted.cursor).from
    const progress: Progress = before ?? { examined: 0, nearest: [], position }
    const read = (open: OpenInbox) =>
      this.budgets
        .readFor(principal.accountId, wait.signal, (read) => this.examine(open, wanted, progress, read))
        .catch((error: unknown) => {
          if (wait.end === null || error !== wait.signal.reason) throw error
          return { ...progress, inbox: open.inbox, message: null }
        })
    return this.inboxes.readMail(principal, inboxId, { read })
  }

  private async examine(
    { inbox, endOffset }: OpenInbox,
    wanted: WaitForMessage,
    progress: Progress,
    read: MailRead,
  ): Promise<Waited> {
    let { examined, nearest } = progress
    const from = progress.position
    // Views that are being rebuilt may end earlier: what they show then has been examined.
    const to = Math.max(endOffset, from)
    const range = { order: wanted.order, from, to }
    for await (const { offset, message } of this.reader.opened(inbox, range, read)) {
      const { id, receivedAt, mail } = message
      // Called once for each message: searching a long text takes long.
      const why = await mismatches(mail, wanted)
      if (why.length === 0) return { inbox, message, examined, nearest, position: offset + 1 }
      const miss = { id, receivedAt, subject: mail.subject, offset, mismatches: why }
      nearest = nearestWith(nearest, miss)
      examined += 1
    }
    return { inbox, message: null, examined, nearest, position: to }
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

/** An error that may be over before the timeout. Throws any other. */
function ifTransient(error: unknown): Error {
  if (isTransient(error)) return error
  throw error
}
