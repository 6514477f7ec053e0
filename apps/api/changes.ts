import { Injectable } from '@nestjs/common'
import { Recorder, type Attribution, type DomainEvent } from '#libs/ports/event-log/codecs.js'
import { Views } from './http/views.js'

/** Puts what a command has decided on the log. */
@Injectable()
export class Changes {
  constructor(
    private readonly recorder: Recorder,
    private readonly views: Views,
  ) {}

  /**
   * Resolves once the events are durable and the views show them. Throws LogUnavailableError; and ViewsCatchingUpError
   * if the events are durable but not visible after five seconds.
   */
  async record(events: readonly DomainEvent[], by: Attribution): Promise<void> {
    for (const event of events) await this.views.waitUntilVisible(await this.recorder.record(event, by))
  }
}
