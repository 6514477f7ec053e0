import { Injectable } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { pauseUntilAborted } from '#libs/runtime/timing.js'
import { Authenticator } from '../access/authenticator.js'
import { callerOf, READERS } from '../access/principal.js'
import { RequestBudgets, untilClientLeaves, type MailRead } from '../http/budgets.js'
import { LongRequests, type LongRequest, type LongRequestServices } from '../http/long-requests.js'
import { isTransient } from '../http/problems.js'
import { ContentPool } from './content-pool.js'
import { examine, foundMessageJson, openExtractor, type Extractor, type FoundMessage } from './extraction.js'
import type { MailPosition, MailSource } from './mail-source.js'
import { Matcher } from './matching.js'
import type { WaitForMessage } from './message-filters.js'
import { FirstReadings } from './message-reader.js'
import { addMiss, NO_MISSES, noMatch, type Misses } from './near-misses.js'

/** The views are read again after this time, since a signal may be lost. */
export const REREAD_MS = 10_000
/** The same if the views can't be read. */
const RETRY_MS = 500

/** The waits of this process. */
export class OpenWaits extends LongRequests {
  constructor(max: number, services: LongRequestServices) {
    const detail = 'The limit of open waits is reached, and this key has its share of them.'
    const options = {
      max,
      gauge: { name: 'mayfly_open_waits', help: 'Requests that wait for a message.' },
      full: { code: 'too-many-waits', detail },
      closed: 'This instance is shutting down. Send the wait again to reach another one.',
    } as const
    super(options, services)
  }
}

/** What a wait has found so far. */
export interface Examination {
  isFound: boolean
  /** It looks again after this time at the latest; at once if it is 0. */
  rereadMs: number
  /** It looks again at this time at the earliest, as in `performance.now`. */
  notBeforeMs?: number
}

/** What a wait for a message has examined. Its size does not depend on the number of messages. */
interface Examined extends Examination, Misses {
  source: MailSource
  /** Null without an expression. */
  extractor: Extractor | null
  /** Where the next scan begins. After a match, the position after its message. */
  position: MailPosition
  match: { inbox: ActiveInbox; message: FoundMessage } | null
}

/** Waits for messages. */
@Injectable()
export class MessageWaits {
  constructor(
    private readonly waits: OpenWaits,
    private readonly authenticator: Authenticator,
    private readonly readings: FirstReadings,
    private readonly budgets: RequestBudgets,
    private readonly pool: ContentPool,
  ) {}

  /**
   * Answers with the first message that matches. `channel` is signalled when the mail changes. Throws
   * no-matching-message, and the errors of `untilFound`, `open` and `scan`.
   */
  async firstMatch(
    { channel, open }: { channel: string; open: () => MailSource | Promise<MailSource> },
    query: WaitForMessage,
    reply: FastifyReply,
  ) {
    const { request } = reply
    const { accountId } = callerOf(request)
    const matcher = new Matcher(query)
    const begin = async (signal: AbortSignal): Promise<Examined> => {
      const source = await open()
      const position = source.positionOf(query.cursor)
      const extractor = await openExtractor(this.pool, query.extract, accountId, signal)
      return { ...NO_MISSES, source, position, extractor, match: null, isFound: false, rereadMs: 0 }
    }
    const result = await this.untilFound<Examined>(
      request,
      channel,
      query.timeout,
      async (latest, signal) => {
        const before = latest ?? (await begin(signal))
        return this.budgets.readFor(accountId, signal, (read) =>
          this.examineNew(before, query, matcher, read),
        )
      },
    )
    const { source, match } = result
    const cursor = source.cursorOf(result.position)
    if (match === null) throw noMatch(result, source.explain(query), cursor)
    await this.budgets.holdAnswer(reply, match.message.bytes)
    this.readings.note(match.inbox, match.message)
    void reply.header('mayfly-cursor', cursor)
    return foundMessageJson(match.message, source.inboxesPath)
  }

  private async examineNew(
    before: Examined,
    query: WaitForMessage,
    matcher: Matcher,
    read: MailRead,
  ): Promise<Examined> {
    const { source, extractor } = before
    let misses: Misses = before
    const matched: Examined['match'][] = []
    const { position, next } = await source.scan(query, before.position, read, async ({ inbox, message }) => {
      // Called once for each message, since searching a long text takes long.
      const { mismatches, found } = await examine(message, matcher, extractor)
      if (mismatches.length === 0) {
        matched.push({ inbox, message: found })
        return 'end-after'
      }
      misses = addMiss(misses, message, mismatches)
      return 'continue'
    })
    const [match = null] = matched
    const rereadMs = next === null ? source.rereadMs() : 0
    return { ...before, ...misses, match, isFound: match !== null, position: next ?? position, rereadMs }
  }

  /**
   * Examines something at each signal of a channel. Resolves with the first result that is found, or with the last one
   * after the timeout, in seconds, or if the client leaves. Throws the errors of `examine`, unless they may be over before
   * the timeout; those of `reauthenticate`; and too-many-waits and shutting-down.
   */
  async untilFound<Result extends Examination>(
    request: FastifyRequest,
    channel: string,
    timeout: number,
    examine: (latest: Result | null, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const deadlineMs = performance.now() + timeout * 1_000
    const ending = new AbortController()
    let rung = Promise.withResolvers<null>()
    const wait: LongRequest = {
      request,
      dueAtMs: Infinity,
      ring: () => rung.resolve(null),
      end: (reason) => ending.abort(reason),
    }
    const pauseUntil = async (atMs: number) => {
      wait.dueAtMs = atMs
      await rung.promise
      rung = Promise.withResolvers()
    }
    this.waits.enter(wait)
    return untilClientLeaves(request, async (clientGone) => {
      const signal = AbortSignal.any([ending.signal, clientGone])
      signal.addEventListener('abort', () => rung.resolve(null))
      let latest: Result | null = null
      let isListening = false
      const look = async (): Promise<Result> => {
        // The key or the token may be revoked at any time.
        if (isListening) await this.authenticator.reauthenticate(request, READERS)
        return examine(latest, signal)
      }
      for (;;) {
        const result: Result | Error = await look().catch((error: unknown) => {
          if (isTransient(error)) return error
          if (latest === null || error !== signal.reason) throw error
          return latest
        })
        if (!(result instanceof Error)) latest = result
        if (latest?.isFound === true) return latest
        if (isTransient(signal.reason)) throw signal.reason
        const nowMs = performance.now()
        if (nowMs >= deadlineMs || signal.aborted) {
          if (result instanceof Error) throw result
          return result
        }
        if (!isListening) {
          await this.waits.listen(wait, channel)
          isListening = true
          // A message may have arrived between the read and the subscription.
          continue
        }
        const { rereadMs, notBeforeMs = 0 } = result instanceof Error ? { rereadMs: RETRY_MS } : result
        const pauseMs = Math.min(rereadMs, REREAD_MS)
        if (pauseMs > 0) await pauseUntil(Math.min(nowMs + pauseMs, deadlineMs))
        const restMs = Math.min(notBeforeMs, deadlineMs) - performance.now()
        if (restMs > 0) await pauseUntilAborted(restMs, signal)
      }
    }).finally(() => this.waits.leave(wait))
  }
}
