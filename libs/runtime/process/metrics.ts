import { readFileSync } from 'node:fs'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Makes metrics and registers them. A counter that is registered already is returned: roles of a process may share it. */
export class Metrics {
  constructor(private readonly registry: Registry) {}

  counter<Label extends string = never>(
    name: string,
    help: string,
    labelNames: readonly Label[] = [],
  ): Counter<Label> {
    const existing = this.registry.getSingleMetric(name)
    if (existing instanceof Counter) return existing
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }

  histogram<Label extends string = never>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] })
  }

  /** `read` is called at each scrape. If it fails, the value is NaN. */
  gauge(name: string, help: string, read?: () => number | Promise<number>): Gauge<never> {
    async function collect(this: Gauge<never>) {
      if (read !== undefined) this.set(await Promise.resolve(read()).catch(() => NaN))
    }
    return new Gauge({ name, help, collect, registers: [this.registry] })
  }
}

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

/** Resident memory that does not belong to files (RssAnon); null if the system does not report it. */
export function anonymousBytes(pid: number | 'self' = 'self'): number | null {
  try {
    const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kib === undefined ? null : Number(kib) * 1024
  } catch {
    return null
  }
}
