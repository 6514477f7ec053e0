import { Controller, Get, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { environmentChannel } from '#libs/ports/read-model/consistent-views.js'
import { pauseUntilAborted } from '#libs/runtime/timing.js'
import { Authenticator } from '../access/authenticator.js'
import { Caller, READERS, RequireScope, type Principal } from '../access/principal.js'
import { faultsHint } from '../faults/fault-requests.dto.js'
import { RequestBudgets, untilClientLeaves, type MailRead } from '../http/budgets.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { writeEnvironmentCursor, type EnvironmentCursor } from './environment-cursor.js'
import { EnvironmentMail } from './environment-mail.js'
import { countLabel, countMissed, labelQuery, readCountWanted, type CountWanted } from './label-count.js'
import { ContentPool } from './content-pool.js'
import { examine, Extractor, foundMessageJson, type FoundMessage } from './extraction.js'
import { Matcher } from './matching.js'
import { WaitForEnvironmentMessage } from './message-filters.js'
import { FirstReadings } from './message-reader.js'
import { Message, MessageCount } from './message-schemas.js'
import { addMiss, NO_MISSES, noMatch, type Misses } from './near-misses.js'
import { OpenWaits, type OpenWait } from './open-waits.js'
import { REREAD_MS, untilFound } from './wait-loop.js'

/** `mode=exactly` must hold for this time. */
const EXACT_FOR_MS = 2_000
/** The minimum time from the start of one count of a wait to the next. */
const COUNT_AGAIN_MS = 50
/** The same as a multiple of the time that the last count took. */
const COUNT_AGAIN_FACTOR = 5

interface Match {
  inbox: ActiveInbox
  message: FoundMessage
}

/** What a wait has examined. Its size does not depend on the number of messages. */
interface Examined extends Misses {
  /** Where the next scan begins. After a match, the position after its message. */
  position: EnvironmentCursor
  /** Null without an expression, and before the first examination. */
  extractor: Extractor | null
  /** Whether there is more to examine at once. */
  hasMore: boolean
  match: Match | null
}

/** The request of a wait. */
interface Waiting {
  principal: Principal
  wanted: WaitForEnvironmentMessage
  matcher: Matcher
  request: FastifyRequest
}

/** Waits for a message in any inbox of the key's environment. */
@Controller('v1/messages/wait')
@Tag('Messages')
export class EnvironmentWaitController {
  constructor(
    private readonly views: Views,
    private readonly mail: EnvironmentMail,
    private readonly waits: OpenWaits,
    private readonly authenticator: Authenticator,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
    private readonly instance: Instance,
    private readonly pool: ContentPool,
  ) {}

  @Get()
  @RequireScope(...READERS)
  @Describe({
    id: 'waitForMessage',
    summary: 'Wait for a message in any inbox',
    description:
      "Returns the first message that matches, in any inbox of the key's environment except protected ones: the oldest " +
      'one that is present (after `cursor` if given), or the next one to arrive. With `order=desc`, the newest one that ' +
      'is present. Nothing is consumed: two waits get the same message. To wait only for mail that you are about to ' +
      'send, read a `Mayfly-Cursor` of `GET /v1/messages` first.\n\nWith `label` and `count`, it waits until the inboxes ' +
      'of the label have received that many messages, and returns the counts. Deleted messages count too, and inboxes ' +
      'that ended within the last day; protected inboxes do not. After the timeout, `too_few` and `too_many` list inboxes ' +
      'that have fewer or more messages than `per_inbox`, or than an even share.',
    answer: {
      description: 'The message, or the counts.',
      schema: Type.Union([Message, MessageCount]),
      headers: ['Mayfly-Cursor'],
    },
    problems: ['no-matching-message', 'too-many-waits', 'busy'],
  })
  async wait(
    @Caller() principal: Principal,
    @Query() query: WaitForEnvironmentMessage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const counted = readCountWanted(query)
    if (counted !== null) return this.waitForCount({ principal, wanted: query, request }, counted, reply)
    const waiting = { principal, wanted: query, matcher: new Matcher(query), request }
    const result = await untilClientLeaves(request, (clientGone) =>
      this.waits.run(principal, clientGone, (wait) => this.firstMatch(waiting, wait)),
    )
    const { match } = result
    const cursor = writeEnvironmentCursor(principal, result.position)
    if (match === null)
      throw noMatch(result, { ifNone: noMail(query), hint: defaultFaultsHint(principal) }, cursor)
    await this.budgets.holdAnswer(reply, match.message.bytes)
    this.readings.note(match.inbox, [match.message])
    void reply.header('mayfly-cursor', cursor)
    return foundMessageJson(match.message, '/v1/inboxes')
  }

  /** Throws the errors of `untilFound` and `reauthenticate`. */
  private async waitForCount(
    { principal, wanted: { timeout }, request }: Omit<Waiting, 'matcher'>,
    wanted: CountWanted,
    reply: FastifyReply,
  ) {
    const label = () => labelQuery(principal, wanted, this.instance.now())
    let nextCountMs = 0
    const read = <Result>(work: () => Promise<Result>) =>
      this.budgets.search(request, () => this.views.readComplete('inbox-events', work))
    const count = async () => {
      const startedMs = performance.now()
      const counted = await read(async () => {
        const from = await this.views.endOffsets()
        const found = await countLabel(this.views, label(), wanted)
        return { ...found, cursor: writeEnvironmentCursor(principal, { from, range: null }) }
      })
      // An account with many such waits counts less often, as its counts wait for their turn.
      const tookMs = performance.now() - startedMs
      nextCountMs = startedMs + Math.max(COUNT_AGAIN_MS, COUNT_AGAIN_FACTOR * tookMs)
      return counted
    }
    const result = await untilClientLeaves(request, (clientGone) =>
      this.waits.run(principal, clientGone, (wait) =>
        untilFound(wait, {
          timeoutMs: timeout * 1_000,
          examine: async () => {
            await this.authenticator.reauthenticate(request, READERS)
            const counted = await count()
            if (!counted.isReached || wanted.mode === 'at_least') return counted
            // Deleting mail does not lower the count. If it is the same after this time, no further mail came.
            await pauseUntilAborted(EXACT_FOR_MS, wait.signal)
            return wait.end === null ? count() : { ...counted, isReached: false }
          },
          isFound: ({ isReached }) => isReached,
          untilRereadMs: () => REREAD_MS,
          subscribe: (ring) => this.views.signals.subscribe(environmentChannel(principal), ring),
          pause: async (ms) => {
            const endMs = performance.now() + ms
            await this.authenticator.waitFor(wait.bell, ms, request)
            // Mail that arrives at a high rate is not counted after each message.
            const restMs = Math.max(Math.min(nextCountMs, endMs) - performance.now(), 0)
            await pauseUntilAborted(restMs, wait.signal)
          },
        }),
      ),
    )
    const { isReached, received, inboxes, cursor } = result
    if (!isReached) {
      const hint = defaultFaultsHint(principal)
      throw await read(() => countMissed(this.views, label(), wanted, result, { hint, cursor }))
    }
    void reply.header('mayfly-cursor', cursor)
    return { count: received, inboxes, cursor }
  }

  /** As `untilFound`. Throws the errors of `reauthenticate` and `scan`. */
  private firstMatch(waiting: Waiting, wait: OpenWait): Promise<Examined> {
    const { principal, wanted } = waiting
    const position = this.mail.startOf(principal, wanted.cursor)
    const start: Examined = { ...NO_MISSES, position, extractor: null, hasMore: true, match: null }
    return untilFound<Examined>(wait, {
      timeoutMs: wanted.timeout * 1_000,
      examine: (before) => this.examineNew(waiting, before ?? start, wait),
      isFound: ({ match }) => match !== null,
      untilRereadMs: ({ hasMore }) => (hasMore ? 0 : REREAD_MS),
      subscribe: (ring) => this.views.signals.subscribe(environmentChannel(principal), ring),
      pause: (ms) => this.authenticator.waitFor(wait.bell, ms, waiting.request),
    })
  }

  /** Examines messages that have not been examined, in complete views. */
  private async examineNew(waiting: Waiting, before: Examined, wait: OpenWait): Promise<Examined> {
    const { principal, request } = waiting
    // The key may be revoked at any time.
    await this.authenticator.reauthenticate(request, READERS)
    const read = this.budgets.readFor(principal.accountId, wait.signal, (read) =>
      this.views.readComplete('inbox-events', () => this.examine(waiting, before, read)),
    )
    return wait.orIfEnded(read, before)
  }

  private async examine(
    { principal, wanted, matcher }: Waiting,
    before: Examined,
    read: MailRead,
  ): Promise<Examined> {
    const { pool } = this
    const extractor =
      before.extractor ?? (await Extractor.open(pool, wanted.extract, principal.accountId, read.signal))
    let misses: Misses = before
    const matched: Match[] = []
    const { position, next } = await this.mail.scan(
      principal,
      wanted,
      before.position,
      read,
      async ({ inbox, message }) => {
        // Called once for each message, since searching a long text takes long.
        const { mismatches, found } = await examine(message, matcher, extractor, read.signal)
        if (mismatches.length === 0) {
          matched.push({ inbox, message: found })
          return 'end-after'
        }
        misses = addMiss(misses, message, mismatches)
        return 'continue'
      },
    )
    const match = matched[0] ?? null
    return { ...misses, extractor, match, position: next ?? position, hasMore: next !== null }
  }
}

function defaultFaultsHint({ defaultFaults }: Principal): string | null {
  return faultsHint(defaultFaults, 'environment')
}

function noMail({ label, cursor }: WaitForEnvironmentMessage): string {
  const where =
    label === undefined ? 'in this environment' : 'in inboxes of this environment with these labels'
  return `No mail has arrived ${where}${cursor === undefined ? '' : ' after `cursor`'}.`
}
