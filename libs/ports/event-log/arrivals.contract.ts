import { keyIn, PARTITIONS, record, textOf } from './event-log-harness.contract.js'
import type { ConsumerSpec, EventLog, RecordBatch } from './event-log.js'

const WITHIN_MS = 60_000

/** Collects the records that a consumer receives, and waits for conditions on them. */
export class Arrivals {
  readonly texts = Array.from({ length: PARTITIONS }, (): string[] => [])
  private readonly waiting = new Set<() => void>()

  take({ partition, records }: Pick<RecordBatch, 'partition' | 'records'>): void {
    this.texts[partition]?.push(...records.map(textOf))
    this.changed()
  }

  get count(): number {
    return this.texts.flat().length
  }

  /** Must be called when a condition that is waited for may have become true. */
  changed(): void {
    for (const check of this.waiting) check()
  }

  /** Resolves once the condition is true, which is checked after each arrival. Rejects after a minute. */
  async until(condition: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const check = () => {
      if (condition()) resolve(undefined)
    }
    const timer = setTimeout(
      () => reject(new Error(`timed out; received: ${this.texts.join(' | ')}`)),
      WITHIN_MS,
    )
    this.waiting.add(check)
    check()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      this.waiting.delete(check)
    }
  }
}

export function consumerOf(arrivals: Arrivals, spec: Partial<ConsumerSpec> = {}): ConsumerSpec {
  return {
    group: 'group',
    topic: 'inbox-events',
    startAt: () => Promise.resolve('committed'),
    handle(batch) {
      arrivals.take(batch)
      return Promise.resolve('done')
    },
    onError: (error) => {
      throw error
    },
    ...spec,
  }
}

export async function appendTo(log: EventLog, partition: number, ...texts: string[]): Promise<number[]> {
  const appends = texts.map((text) => log.append('inbox-events', record(keyIn(partition), text)))
  return (await Promise.all(appends)).map(({ offset }) => offset)
}
