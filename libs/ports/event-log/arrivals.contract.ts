import { keyIn, PARTITIONS, record, textOf } from './event-log-harness.contract.js'
import type { ConsumerSpec, EventLog, RecordBatch } from './event-log.js'

const WITHIN_MS = 15_000

/** What came to a consumer, and the wait for it to be enough. */
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

  /** To be called where a condition that is waited for may have come true. */
  changed(): void {
    for (const look of this.waiting) look()
  }

  /** Resolves once the condition holds, which is looked at after each arrival; rejects after a bound. */
  async until(condition: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const look = () => {
      if (condition()) resolve(undefined)
    }
    const timer = setTimeout(
      () => reject(new Error(`still waiting; came: ${this.texts.join(' | ')}`)),
      WITHIN_MS,
    )
    this.waiting.add(look)
    look()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      this.waiting.delete(look)
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
