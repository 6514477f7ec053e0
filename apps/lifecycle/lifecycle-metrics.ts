import { Counter, Gauge, type Registry } from 'prom-client'
import { beforeDeadline } from '#libs/runtime/timing/waiting.js'

/** A scraper does not wait long. */
const COUNT_WITHIN_MS = 2_000

/** What the lifecycle counts. */
export class LifecycleMetrics {
  readonly expired: Counter
  readonly forgotten: Counter

  /** `countActive` runs at each scrape; if it fails, `onError` is called and the gauge is NaN. */
  constructor(
    registry: Registry,
    { countActive, onError }: { countActive: () => Promise<number>; onError: (error: unknown) => void },
  ) {
    const registers = [registry]
    this.expired = new Counter({
      name: 'mayfly_expired_inboxes_total',
      help: 'Inboxes ended because their time was over.',
      registers,
    })
    this.forgotten = new Counter({
      name: 'mayfly_forgotten_keys_total',
      help: 'Keys forgotten because their inbox had ended.',
      registers,
    })
    new Gauge({
      name: 'mayfly_active_inboxes',
      help: 'Inboxes that are neither deleted nor expired. Every lifecycle process reports the same number.',
      registers,
      async collect() {
        const count = await beforeDeadline(COUNT_WITHIN_MS, countActive()).catch((error: unknown) => {
          onError(error)
          return NaN
        })
        this.set(count)
      },
    })
  }
}
