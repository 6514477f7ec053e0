import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type InboxId, isId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import { Authenticator } from '../access/authenticator.js'
import { AcceptInboxTokens, type Principal, Caller, READERS, RequireScope } from '../access/principal.js'
import { faultsHint } from '../faults/fault-requests.dto.js'
import { type MailRead, RequestBudgets, untilClientLeaves } from '../http/budgets.js'
import { inboxesPathOf, readOffsetCursor, writeOffsetCursor } from '../http/list-pages.js'
import { noInbox } from '../http/problems.js'
import { Views } from '../views.js'
import { Inboxes, type OpenInbox } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { MessageReader, FirstReadings } from './message-reader.js'
import { ContentPool } from './content-pool.js'
import { examine, Extractor, foundMessageJson, type FoundMessage } from './extraction.js'
import { Matcher } from './matching.js'
import { WaitForMessage } from './message-filters.js'
import { Message } from './message-schemas.js'
import { addMiss, NO_MISSES, noMatch, type Misses } from './near-misses.js'
import { type OpenWait, OpenWaits } from './open-waits.js'
import { REREAD_MS, untilFound } from './wait-loop.js'

/** The progress of a wait. */
interface Progress extends Misses {
  /** The first offset that was not examined, or the offset after the message that matched. */
  position: number
  /** Null without an expression, and before the first examination. */
  extractor: Extractor | null
}

interface Examined extends Progress {
  inbox: ActiveInbox
  /** The first match; null if there is none yet. */
  message: FoundMessage | null
}

/** The request of a wait. */
interface Waiting {
  principal: Principal
  inboxId: InboxId
  wanted: WaitForMessage
  matcher: Matcher
  request: FastifyRequest
}

/** Waits for a message. Its path is more specific than the path of a message, so it is matched first. */
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
    private readonly pool: ContentPool,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @AcceptInboxTokens()
  @Describe({
    id: 'waitForInboxMessage',
    summary: 'Wait for a message',
    description:
      'Returns the first message that matches: the oldest one that is present (after `cursor` if given), or the next one ' +
      'to arrive. With `order=desc`, the newest one that is present. Nothing is consumed: two waits get the same message. ' +
      'To wait only for mail that you are about to send, read a `Mayfly-Cursor` first.',
    requestHeaders: ['Mayfly-Inbox-Password'],
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
    const waiting = { principal, inboxId, wanted: query, matcher: new Matcher(query), request }
    const result = await untilClientLeaves(request, (clientGone) =>
      this.waits.run(principal, clientGone, (wait) => this.firstMatch(waiting, wait)),
    )
    const cursor = writeOffsetCursor(result.inbox.id, { from: result.position, to: null, end: null })
    if (result.message === null) throw noMatch(result, reasons(result.inbox, query), cursor)
    await this.budgets.holdAnswer(reply, result.message.bytes)
    this.readings.note(result.inbox, [result.message])
    void reply.header('mayfly-cursor', cursor)
    return foundMessageJson(result.message, inboxesPathOf(request))
  }

  /**
   * As `untilFound`. Throws the errors of `openContent`, also if the inbox ends during the wait, and those of
   * `reauthenticate`.
   */
  private firstMatch(waiting: Waiting, wait: OpenWait): Promise<Examined> {
    return untilFound<Examined>(wait, {
      timeoutMs: waiting.wanted.timeout * 1_000,
      examine: (before) => this.examineNew(waiting, before, wait),
      isFound: ({ message }) => message !== null,
      untilRereadMs: ({ inbox }) => this.untilRereadMs(inbox),
      subscribe: (ring) => this.views.signals.subscribe(inboxChannel(waiting.inboxId), ring),
      pause: (ms) => this.authenticator.waitFor(wait.bell, ms, waiting.request),
    })
  }

  /** At most the time until the inbox expires. */
  private untilRereadMs({ expiresAt }: ActiveInbox): number {
    const toExpiryMs = expiresAt.getTime() - this.instance.now().getTime()
    return Math.min(Math.max(toExpiryMs, 1), REREAD_MS)
  }

  /** Examines the messages that have not been examined, in complete views. */
  private async examineNew(waiting: Waiting, before: Examined | null, wait: OpenWait): Promise<Examined> {
    const { principal, inboxId, wanted, request } = waiting
    // The password is checked once, the key or token before each read, since it may be revoked at any time.
    if (before === null) await this.inboxes.openContent(principal, inboxId)
    else await this.authenticator.reauthenticate(request, READERS)
    const position = wanted.cursor === undefined ? 0 : readOffsetCursor(inboxId, wanted.cursor).from
    const progress: Progress = before ?? { ...NO_MISSES, position, extractor: null }
    const read = (open: OpenInbox) =>
      wait.orIfEnded(
        this.budgets.readFor(principal.accountId, wait.signal, (read) =>
          this.examine(open, waiting, progress, read),
        ),
        { ...progress, inbox: open.inbox, message: null },
      )
    return this.inboxes.readMail(principal, inboxId, read)
  }

  private async examine(
    { inbox, endOffset }: OpenInbox,
    { principal, wanted, matcher }: Waiting,
    progress: Progress,
    read: MailRead,
  ): Promise<Examined> {
    const { pool } = this
    const extractor =
      progress.extractor ?? (await Extractor.open(pool, wanted.extract, principal.accountId, read.signal))
    let misses: Misses = progress
    const from = progress.position
    // Views that are being rebuilt may end earlier. Everything that they show has been examined.
    const to = Math.max(endOffset, from)
    const range = { order: wanted.order, from, to }
    for await (const { offset, message } of this.reader.opened(inbox, range, read)) {
      // Called once for each message, since searching a long text takes long.
      const { mismatches, found } = await examine(message, matcher, extractor, read.signal)
      if (mismatches.length === 0)
        return { ...misses, inbox, extractor, message: found, position: offset + 1 }
      misses = addMiss(misses, message, mismatches)
    }
    return { ...misses, inbox, extractor, message: null, position: to }
  }
}

function reasons(inbox: ActiveInbox, { cursor }: WaitForMessage) {
  const { createdAt, lastMessageAt, faults } = inbox
  const hint = faultsHint(faults, 'inbox')
  const none = 'No mail has arrived in this inbox since'
  if (lastMessageAt === null) return { ifNone: `${none} it was created at ${createdAt.toISOString()}.`, hint }
  const why = cursor === undefined ? 'has been deleted' : 'is before `cursor` or has been deleted'
  return { ifNone: `${none} the last one at ${lastMessageAt.toISOString()}, which ${why}.`, hint }
}
