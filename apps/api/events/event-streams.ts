import type { OutgoingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { Injectable } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Authenticator } from '../access/authenticator.js'
import { callerOf, READERS } from '../access/principal.js'
import { note } from '../http/access-log.js'
import { RequestBudgets } from '../http/budgets.js'
import { setSafeHeaders } from '../http/headers.js'
import { LongRequests, type LongRequest, type LongRequestServices } from '../http/long-requests.js'
import { Problem } from '../http/problems.js'
import { StalledReaders } from '../http/stalled-readers.js'
import {
  RETRY,
  sendNew,
  type Feed,
  type FeedEntry,
  type StreamClient,
  type StreamOutcome,
} from './event-feed.js'

/** The streams of this process. */
export class OpenStreams extends LongRequests {
  constructor(max: number, services: LongRequestServices) {
    const detail = 'The limit of open streams is reached, and this key has its share of them.'
    const gauge = { name: 'mayfly_open_streams', help: 'Open streams of events.' }
    super({ max, gauge, full: { code: 'too-many-streams', detail } }, services)
  }
}

export const MEDIA_TYPE = 'text/event-stream'

/** The connection closes with the stream, since an idle connection would delay the shutdown. */
const HEADERS = {
  'content-type': MEDIA_TYPE,
  'x-accel-buffering': 'no',
  connection: 'close',
}

/** Shows clients and proxies that the connection is still open. */
const COMMENT = ':\n\n'
const COMMENT_EVERY_MS = 15_000
/** A larger event takes memory of its account until its client has read it. */
const SMALL_EVENT_BYTES = 4 * 1024
/** A caller that was authenticated is not authenticated again within this time. */
const AUTHENTICATED_FOR_MS = 100
/** A stream that must end is cut after this time, if its client does not read. */
const ENDED_WITHIN_MS = 1_000

/** Answers requests with streams of server-sent events. */
@Injectable()
export class EventStreams {
  constructor(
    private readonly streams: OpenStreams,
    readonly stalled: StalledReaders,
    readonly budgets: RequestBudgets,
    readonly authenticator: Authenticator,
  ) {}

  /**
   * Calls `open` once nothing that is signalled on the channel is missed any more, and starts to send its events. The
   * stream goes on after that. Throws too-many-streams, shutting-down, and the errors of `open`.
   */
  async send<Entry extends FeedEntry>(
    reply: FastifyReply,
    channel: string,
    open: () => Promise<Feed<Entry>>,
  ): Promise<void> {
    const stream = new EventStream<Entry>(reply, this)
    this.streams.enter(stream)
    const leave = () => this.streams.leave(stream)
    try {
      await this.streams.listen(stream, channel)
      const feed = await open()
      stream.throwIfEnded()
      if (reply.request.method === 'HEAD') {
        leave()
        await reply.headers(HEADERS).send(Readable.from([]))
      } else if (reply.raw.closed) leave()
      else {
        reply.raw.once('close', leave)
        stream.start(feed)
      }
    } catch (error) {
      leave()
      throw error
    }
  }
}

/** One stream. Between two events it is no more than this object, its feed, and the objects of its request. */
class EventStream<Entry extends FeedEntry> implements LongRequest, StreamClient {
  readonly request: FastifyRequest
  dueAtMs = Infinity
  private feed: Feed<Entry> | null = null
  private ended: { reason: Problem | null } | null = null
  private isSending = false
  private isRung = false
  private commentAtMs = 0
  private authenticatedAtMs = -Infinity

  constructor(
    private readonly reply: FastifyReply,
    private readonly services: Pick<EventStreams, 'stalled' | 'budgets' | 'authenticator'>,
  ) {
    this.request = reply.request
  }

  throwIfEnded(): void {
    if (this.ended?.reason) throw this.ended.reason
  }

  start(feed: Feed<Entry>): void {
    const { reply, request } = this
    const { raw: response } = reply
    const { socket } = request.raw
    this.feed = feed
    note(request, { stream: 'client-gone' })
    setSafeHeaders(reply.headers(HEADERS))
    reply.hijack()
    response.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders)
    response.write(RETRY)
    this.commentAtMs = performance.now() + COMMENT_EVERY_MS
    const leave = () => this.finish('client-gone')
    const unwatch = this.services.stalled.watch(socket, () => {
      this.finish('client-stalled')
      socket.destroy()
    })
    socket.once('end', leave)
    response.once('close', () => {
      socket.off('end', leave)
      unwatch()
      leave()
    })
    if (socket.readableEnded) leave()
    this.ring()
  }

  ring(): void {
    this.isRung = true
    if (!this.isSending && this.feed !== null) void this.sendAll(this.feed)
  }

  end(reason: Problem): void {
    if (this.feed === null) this.ended ??= { reason }
    else this.finish(reason.code === 'too-many-streams' ? 'crowded-out' : 'stopping')
  }

  isGone(): boolean {
    return this.ended !== null
  }

  async authenticate(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs < this.authenticatedAtMs + AUTHENTICATED_FOR_MS) return
    await this.services.authenticator.reauthenticate(this.request, READERS)
    this.authenticatedAtMs = nowMs
  }

  async send(text: string): Promise<void> {
    const bytes = Buffer.byteLength(text)
    const { accountId } = callerOf(this.request)
    const release = bytes > SMALL_EVENT_BYTES ? await this.services.budgets.holdEvent(accountId, bytes) : null
    await this.write(text)
    release?.()
  }

  private write(text: string): Promise<void> {
    const { raw: response } = this.reply
    return new Promise((resolve) => {
      // The callback is also called, with an error, if the connection is lost.
      if (this.isGone() || response.destroyed) resolve()
      else response.write(text, () => resolve())
    })
  }

  /** Sends what is new, until nothing has rung meanwhile. */
  private async sendAll(feed: Feed<Entry>): Promise<void> {
    this.isSending = true
    try {
      while (this.isRung && !this.isGone()) {
        this.isRung = false
        const next = await sendNew(feed, this)
        if (typeof next === 'string') {
          this.finish(next)
          break
        }
        const nowMs = performance.now()
        if (nowMs >= this.commentAtMs) {
          await this.write(COMMENT)
          this.commentAtMs += COMMENT_EVERY_MS * Math.ceil((nowMs - this.commentAtMs + 1) / COMMENT_EVERY_MS)
        }
        this.dueAtMs = Math.min(nowMs + next, this.commentAtMs)
      }
    } catch (error) {
      this.request.log.error({ err: error }, 'a stream failed')
      this.finish('failed')
    } finally {
      this.isSending = false
    }
  }

  /** Ends the stream. The first outcome is noted in the request's line. */
  private finish(outcome: StreamOutcome): void {
    if (this.ended !== null) return
    this.ended = { reason: null }
    note(this.request, { stream: outcome })
    const { raw: response } = this.reply
    if (outcome === 'failed') response.destroy()
    if (response.destroyed) return
    response.end()
    setTimeout(() => response.destroy(), ENDED_WITHIN_MS).unref()
  }
}
