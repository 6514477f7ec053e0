import { Injectable } from '@nestjs/common'
import { Recorder, type Attribution, type DomainEvent } from '#libs/ports/event-log/cloud-event.js'
import { partitionName, type Position } from '#libs/ports/event-log/event-log.js'
import { KnownKeys } from './access/key-lookup.js'
import { Views } from './views.js'

/** Records the events of commands. */
@Injectable()
export class VisibleRecorder {
  constructor(
    private readonly recorder: Recorder,
    private readonly views: Views,
    private readonly knownKeys: KnownKeys,
  ) {}

  /**
   * Resolves with their positions once the events are durable, and apply on this instance: the views show them. They are
   * independent of each other: if it rejects, any of them may be durable. Throws LogUnavailableError; and
   * ViewsCatchingUpError if the events are durable but not visible after five seconds.
   */
  async record(events: readonly DomainEvent[], by: Attribution): Promise<Position[]> {
    const positions = await Promise.all(events.map((event) => this.recorder.record(event, by)))
    const partitions = [...Map.groupBy(positions, partitionName).values()]
    const last = partitions.map((each) =>
      each.reduce((one, other) => (one.offset > other.offset ? one : other)),
    )
    await Promise.all(last.map((position) => this.views.waitUntilVisible(position)))
    if (positions.some(({ topic }) => topic === 'account-events')) this.knownKeys.forgetAll()
    return positions
  }
}
