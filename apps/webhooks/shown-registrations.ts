import type { EventLog } from '#libs/ports/event-log/event-log.js'
import type { Watermark } from '#libs/ports/read-model/watermark.js'

export interface ShownRegistrationsOptions {
  log: Pick<EventLog, 'topology'>
  watermark: Pick<Watermark, 'mustHavePassedAll'>
}

const TOPIC = 'account-events'
const SHOWN_WITHIN_MS = 10_000

/** Looks for webhooks in views that show every registration on the log: in lost ones, or an older copy, some are missing. */
export class ShownRegistrations {
  constructor(private readonly options: ShownRegistrationsOptions) {}

  /** What a look has found. Rejects where the views did not show all before it, or do not behind it. */
  async look<Found>(find: () => Promise<Found>): Promise<Found> {
    const { log, watermark } = this.options
    const { partitions } = await log.topology(TOPIC)
    await watermark.mustHavePassedAll(partitions, SHOWN_WITHIN_MS)
    const found = await find()
    // They may have been lost since.
    await watermark.mustHavePassedAll(partitions, 0)
    return found
  }
}
