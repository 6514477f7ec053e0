import { Counter, type Registry } from 'prom-client'

/** What the lifecycle counts. */
export class LifecycleMetrics {
  readonly expired: Counter
  readonly forgotten: Counter

  constructor(registry: Registry) {
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
  }
}
