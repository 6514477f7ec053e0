import type { Registry } from 'prom-client'

const VALID_MS = 1_000

/** The metrics of a process as text, rendered at most once a second, so that frequent requests are cheap. */
export class MetricsText {
  private made: Promise<string> | null = null
  private madeAtMs = 0

  constructor(private readonly registry: Registry) {}

  get contentType(): string {
    return this.registry.contentType
  }

  read(): Promise<string> {
    const nowMs = performance.now()
    if (this.made === null || nowMs - this.madeAtMs >= VALID_MS) {
      this.made = this.registry.metrics()
      this.madeAtMs = nowMs
    }
    return this.made
  }
}
