import type { EventLog, PartitionRange } from '#libs/event-log/event-log.js'
import type { Watermark } from '#libs/read-model/watermark.js'

export interface ShownRegistrationsOptions {
  log: Pick<EventLog, 'topology'>
  watermark: Pick<Watermark, 'mustHavePassed'>
}

const TOPIC = 'account-events'
const SHOWN_WITHIN_MS = 10_000

/** Looks for webhooks in views that show every registration on the log: in lost ones, or an older copy, some are missing. */
export class ShownRegistrations {
  constructor(private readonly options: ShownRegistrationsOptions) {}

  /** What a look has found. Rejects where the views did not show all before it, or do not behind it. */
  async look<Found>(find: () => Promise<Found>): Promise<Found> {
    const { partitions } = await this.options.log.topology(TOPIC)
    await this.mustShow(partitions, SHOWN_WITHIN_MS)
    const found = await find()
    // They may have been lost since.
    await this.mustShow(partitions, 0)
    return found
  }

  private async mustShow(partitions: readonly PartitionRange[], withinMs: number): Promise<void> {
    const { watermark } = this.options
    const shown = partitions.map(async ({ partition, end }) => {
      if (end > 0) await watermark.mustHavePassed({ topic: TOPIC, partition, offset: end - 1 }, withinMs)
    })
    await Promise.all(shown)
  }
}
