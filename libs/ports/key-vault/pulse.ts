import { partitionOf } from '#libs/ports/event-log/topics.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'
import type { KeysHeartbeat } from '#libs/domain/inbox/key-events.js'

export interface PulseOptions {
  append: (event: KeysHeartbeat) => Promise<void>
  everyMs: number
  now: () => Date
  onError: (error: unknown, during: string) => void
}

/**
 * Appends a small record to each partition of inbox-keys, at once and again and again. Without, a forgotten key would
 * stay on the disks of the brokers of an idle partition: they compact a segment only behind its end, and end it only
 * at an append. It beats whether or not a key was forgotten since: a beat must come when a segment is old, not when the
 * record is, and compaction leaves one of all.
 */
export class Pulse {
  private readonly pulses: readonly string[]
  private readonly beating: Repetition

  constructor(
    private readonly options: PulseOptions,
    partitions: number,
  ) {
    this.pulses = Array.from({ length: partitions }, (_, partition) => pulseOf(partition, partitions))
    this.beating = new Repetition({ everyMs: options.everyMs, work: () => this.beat() })
  }

  start(): void {
    this.beating.start()
  }

  stop(): Promise<void> {
    return this.beating.stop()
  }

  private async beat(): Promise<void> {
    const { append, now, onError } = this.options
    const beatAt = now()
    try {
      await Promise.all(this.pulses.map((pulse) => append({ type: 'KeysHeartbeat', pulse, beatAt })))
    } catch (error) {
      onError(error, 'appending heartbeats to inbox-keys')
    }
  }
}

/** A key that belongs to the partition, always the same one. */
function pulseOf(partition: number, partitions: number): string {
  for (let n = 0; ; n += 1) {
    const pulse = `heartbeat-${n}`
    if (partitionOf(pulse, partitions) === partition) return pulse
  }
}
