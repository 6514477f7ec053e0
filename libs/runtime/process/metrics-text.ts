import type { Registry } from 'prom-client'

const VALID_MS = 1_000

/** The metrics of a process as text, rendered at most once a second, so that frequent requests are cheap. */
export class MetricsText {
  private rendered: Promise<string> | null = null
  private renderedAtMs = 0

  constructor(private readonly registry: Registry) {}

  get contentType(): string {
    return this.registry.contentType
  }

  read(): Promise<string> {
    const nowMs = performance.now()
    if (this.rendered === null || nowMs - this.renderedAtMs >= VALID_MS) {
      this.rendered = this.registry.metrics()
      this.renderedAtMs = nowMs
    }
    return this.rendered
  }
}
