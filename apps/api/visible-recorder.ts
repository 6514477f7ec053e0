import { Injectable } from '@nestjs/common'
import { Recorder, type Attribution, type DomainEvent } from '#libs/ports/event-log/cloud-event.js'
import { partitionName, type Position } from '#libs/ports/event-log/event-log.js'
import { Budget } from '#libs/runtime/fairness/budget.js'
import { KnownKeys } from './access/key-lookup.js'
import { Views } from './views.js'

/** The commands of an account that are recorded at once while other accounts send commands too. */
const CONCURRENT_COMMANDS = 4
/** The maximum wait of a command for earlier ones of its account. Then it is recorded, even if the log is slow. */
const TURN_WITHIN_MS = 1_000

/**
 * Records the events of commands. An account that sends many at once waits for its own, so that it does not delay those
 * of other accounts.
 */
@Injectable()
export class VisibleRecorder {
  private readonly turns = new Budget({
    total: Infinity,
    perOwner: CONCURRENT_COMMANDS,
    perOwnerAlone: Infinity,
    waitMs: TURN_WITHIN_MS,
  })

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
    const release = await this.turns.takeOrNull(by.accountId, 1)
    try {
      const positions = await Promise.all(events.map((event) => this.recorder.record(event, by)))
      const partitions = [...Map.groupBy(positions, partitionName).values()]
      const last = partitions.map((each) =>
        each.reduce((one, other) => (one.offset > other.offset ? one : other)),
      )
      await Promise.all(last.map((position) => this.views.waitUntilVisible(position)))
      if (positions.some(({ topic }) => topic === 'account-events')) this.knownKeys.forgetAll()
      return positions
    } finally {
      release?.()
    }
  }
}
