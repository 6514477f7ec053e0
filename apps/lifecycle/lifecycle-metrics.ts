import { Counter, Gauge, type Registry } from 'prom-client'
import { beforeDeadline } from '#libs/runtime/timing.js'

/** How long a scrape waits for the count. */
const COUNT_TIMEOUT_MS = 2_000

/** The metrics of the lifecycle role. */
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
      help: 'Inboxes that expired.',
      registers,
    })
    this.forgotten = new Counter({
      name: 'mayfly_forgotten_keys_total',
      help: 'Keys deleted because their inbox had ended.',
      registers,
    })
    new Gauge({
      name: 'mayfly_active_inboxes',
      help: 'Inboxes that are neither deleted nor expired. Every lifecycle process reports the same number.',
      registers,
      async collect() {
        const count = await beforeDeadline(COUNT_TIMEOUT_MS, countActive()).catch((error: unknown) => {
          onError(error)
          return NaN
        })
        this.set(count)
      },
    })
  }
}
