import { Readable } from 'node:stream'
import { Injectable } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Doorbell } from '#libs/ports/signals/signals.js'
import { Authenticator } from '../access/authenticator.js'
import { callerOf, READERS } from '../access/principal.js'
import { note } from '../http/access-log.js'
import { Views } from '../views.js'
import { EventStream, MEDIA_TYPE, type EndOfEvents } from './event-stream.js'
import type { StreamClient } from './feed-loop.js'
import { OpenStreams } from './open-streams.js'

/** The connection closes with the stream, since an idle connection would delay the shutdown. */
const HEADERS = {
  'content-type': MEDIA_TYPE,
  'x-accel-buffering': 'no',
  connection: 'close',
}

type Chunks = (signal: AbortSignal) => AsyncGenerator<string, EndOfEvents | undefined>

/** Answers requests with streams of events. */
@Injectable()
export class StreamAnswers {
  constructor(
    private readonly views: Views,
    private readonly streams: OpenStreams,
    private readonly authenticator: Authenticator,
  ) {}

  /**
   * Calls `start` once nothing that is signalled on the channel is missed any more, and sends the text that it makes.
   * Throws too-many-streams, shutting-down, and the errors of `start`.
   */
  async send(
    reply: FastifyReply,
    channel: string,
    start: (client: StreamClient) => Promise<Chunks>,
  ): Promise<void> {
    const { request } = reply
    const caller = callerOf(request)
    const opened = new DisposableStack()
    const end = () => opened.dispose()
    try {
      const slot = this.streams.take(caller)
      opened.defer(() => slot.release())
      const bell = new Doorbell()
      opened.defer(await this.views.signals.subscribe(channel, () => bell.ring()))
      const chunks = await start({
        accountId: caller.accountId,
        authenticate: () => this.authenticator.reauthenticate(request, READERS),
        pause: (ms) => this.authenticator.waitFor(bell, ms, request),
      })
      void reply.headers(HEADERS)
      if (request.method === 'HEAD') {
        end()
        void reply.send(Readable.from([]))
        return
      }
      const stream = new EventStream(
        chunks,
        () => bell.ring(),
        (outcome) => note(request, { stream: outcome }),
      )
      note(request, { stream: 'client-gone' })
      stream.once('error', (error) => request.log.error({ err: error }, 'a stream failed'))
      stream.once('close', end)
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
      end()
      throw error
    }
  }
}

/**
 * The id of the last event that the client has received; null if it sends none. It takes precedence over `cursor`: a
 * client that reconnects sends the cursor of its first request again.
 */
export function lastEventIdOf({ headers }: FastifyRequest): string | null {
  const lastId = headers['last-event-id']
  return typeof lastId === 'string' && lastId !== '' ? lastId : null
}
