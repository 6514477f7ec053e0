import { Readable } from 'node:stream'
import { Injectable } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Registry } from 'prom-client'
import { Authenticator } from '../access/authenticator.js'
import { callerOf, READERS } from '../access/principal.js'
import { note } from '../http/access-log.js'
import { RequestBudgets } from '../http/budgets.js'
import { LongRequests } from '../http/long-requests.js'
import { Problem } from '../http/problems.js'
import { StalledReaders } from '../http/stalled-readers.js'
import { Views } from '../views.js'
import { streamText, type EndOfEvents, type Feed, type FeedEntry, type StreamOutcome } from './event-feed.js'

/** The streams of this process. */
export class OpenStreams extends LongRequests {
  constructor(max: number, registry: Registry) {
    const detail = 'The limit of open streams is reached, and this key has its share of them.'
    super({
      max,
      gauge: { name: 'mayfly_open_streams', help: 'Open streams of events.' },
      registry,
      full: { code: 'too-many-streams', detail },
    })
  }
}

export const MEDIA_TYPE = 'text/event-stream'

/** The connection closes with the stream, since an idle connection would delay the shutdown. */
const HEADERS = {
  'content-type': MEDIA_TYPE,
  'x-accel-buffering': 'no',
  connection: 'close',
}

/** A stream that must end is cut after this time, if its client does not read. */
const ENDED_WITHIN_MS = 1_000

/** Answers requests with streams of server-sent events. */
@Injectable()
export class EventStreams {
  constructor(
    private readonly views: Views,
    private readonly streams: OpenStreams,
    private readonly stalled: StalledReaders,
    private readonly budgets: RequestBudgets,
    private readonly authenticator: Authenticator,
  ) {}

  /**
   * Calls `open` once nothing that is signalled on the channel is missed any more, and sends the events until the stream
   * ends. Throws too-many-streams, shutting-down, and the errors of `open`.
   */
  async send<Entry extends FeedEntry>(
    reply: FastifyReply,
    channel: string,
    open: () => Promise<Feed<Entry>>,
  ): Promise<void> {
    const { request } = reply
    await this.streams.run(request, async ({ bell, signal }) => {
      const ending = new DisposableStack()
      try {
        ending.defer(await this.views.signals.subscribe(channel, () => bell.ring()))
        const feed = await open()
        void reply.headers(HEADERS)
        if (request.method === 'HEAD') return void reply.send(Readable.from([]))
        const client = {
          accountId: callerOf(request).accountId,
          authenticate: () => this.authenticator.reauthenticate(request, READERS),
          pause: (ms: number) => this.authenticator.waitFor(bell, ms, request),
        }
        const conclude = noteOnce(request)
        const chunks = this.chunks(streamText(feed, client, this.budgets, signal), request, conclude)
        // Each chunk is made when the client has read the one before it.
        const stream = Readable.from(chunks, { objectMode: false, highWaterMark: 1 })
        const end = () => {
          conclude(outcomeOf(signal.reason))
          setTimeout(() => stream.destroy(), ENDED_WITHIN_MS).unref()
        }
        signal.addEventListener('abort', end)
        if (signal.aborted) end()
        const onStalled = () => {
          conclude('client-stalled')
          stream.destroy()
        }
        ending.defer(this.stalled.watch(request.raw.socket, onStalled))
        // If the stream were returned, Nest would wrap it in another one, which does not end with it.
        await reply.send(stream)
      } finally {
        ending.dispose()
      }
    })
  }

  private async *chunks(
    text: AsyncGenerator<string, EndOfEvents | undefined>,
    { log }: FastifyRequest,
    conclude: (outcome: StreamOutcome) => void,
  ): AsyncGenerator<string> {
    try {
      const end = yield* text
      if (end !== undefined) conclude(end)
    } catch (error) {
      conclude('failed')
      log.error({ err: error }, 'a stream failed')
      throw error
    }
  }
}

/** Notes the first outcome in the request's line. Until then, it is that the client has left. */
function noteOnce(request: FastifyRequest): (outcome: StreamOutcome) => void {
  note(request, { stream: 'client-gone' })
  let isConcluded = false
  return (outcome) => {
    if (!isConcluded) note(request, { stream: outcome })
    isConcluded = true
  }
}

function outcomeOf(reason: unknown): StreamOutcome {
  const code = reason instanceof Problem ? reason.code : null
  if (code === 'too-many-streams') return 'crowded-out'
  return code === 'shutting-down' ? 'stopping' : 'client-gone'
}
