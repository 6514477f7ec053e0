import type { Logger } from 'pino'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import type { Attribution, Recorder } from '#libs/ports/event-log/recorder.js'
import { pauseUntilAborted } from '#libs/runtime/timing/pause.js'
import type { DeliveryEvent } from '#libs/domain/webhook/delivery-events.js'

export interface OutcomesOptions {
  recorder: Pick<Recorder, 'record'>
  logger: Logger
}

const AGAIN_AFTER_MS = 1_000

/** Tells the log what became of attempts. What is known is kept while the log is out of reach: to post again is worse. */
export class Outcomes {
  private readonly stopping = new AbortController()
  private countUntold = 0

  constructor(private readonly options: OutcomesOptions) {}

  /** Whether an outcome can't be told: what else were attempted would have the same fate. */
  get isLogAway(): boolean {
    return this.countUntold > 0
  }

  /** Resolves once the log has been told. Rejects if it could not be until `giveUp`, and never can be. */
  async record(event: DeliveryEvent, attribution: Attribution): Promise<void> {
    const { recorder, logger } = this.options
    let isAway = false
    try {
      for (;;) {
        const fault = await recorder.record(event, attribution).then(() => null, faultOf)
        if (fault === null) return
        if (this.stopping.signal.aborted) throw fault
        if (!isAway) {
          isAway = true
          this.countUntold += 1
          logger.error(
            { err: fault, deliveryId: event.deliveryId },
            'an outcome is kept until the log is back',
          )
        }
        await pauseUntilAborted(AGAIN_AFTER_MS, this.stopping.signal)
      }
    } finally {
      if (isAway) this.countUntold -= 1
    }
  }

  /** What the log still can't be told is unknown from now on. */
  giveUp(): void {
    this.stopping.abort()
  }
}

function faultOf(error: unknown): LogUnavailableError {
  if (error instanceof LogUnavailableError) return error
  throw error
}
