import { Readable } from 'node:stream'
import { Injectable } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { NDJSON } from './media-types.js'
import { ProblemFilter } from './problem-filter.js'
import { StalledReaders } from './stalled-readers.js'

/** Answers requests with lines of JSON, as they are made. */
@Injectable()
export class LinesAnswer {
  constructor(
    private readonly problems: ProblemFilter,
    private readonly stalled: StalledReaders,
  ) {}

  /**
   * Sends pieces of text with one or more lines each. The first one is made before the answer begins, so that an error
   * before it has its own status. After a later error, the answer ends with the line that `lastLine` makes of the problem.
   */
  async send(
    reply: FastifyReply,
    status: number,
    pieces: AsyncGenerator<string>,
    lastLine: (problem: string) => string,
  ): Promise<void> {
    const first = await pieces.next()
    this.stalled.watchAnswer(reply.raw)
    const all = this.all(first, pieces, (error) => lastLine(this.problems.bodyOf(error, reply.request)))
    await reply
      .code(status)
      .type(NDJSON)
      .send(Readable.from(all, { objectMode: false }))
  }

  private async *all(
    first: IteratorResult<string, unknown>,
    rest: AsyncGenerator<string>,
    lastLine: (error: unknown) => string,
  ): AsyncGenerator<string> {
    if (first.done === true) return
    yield first.value
    try {
      yield* rest
    } catch (error) {
      yield lastLine(error)
    }
  }
}
