export interface ScheduleJson {
  /** From the start to the end. */
  seconds: number
  /** Arrivals per second. */
  rate: { wanted: number; reached: number }
  /** The maximum time from when an arrival was due to when it was taken. */
  max_lag_ms: number
}

/**
 * Arrivals at a fixed rate (an open model): their times do not depend on how fast the server answers. Arrivals that are
 * due and not taken wait, and take no memory, because the time of each follows from its index. Times are in
 * milliseconds by `performance.now()`.
 */
export class Schedule {
  private end: number
  private taken = 0
  private lastTakenMs: number
  private maxLagMs = 0

  constructor(
    private readonly perSecond: number,
    total: number,
    private readonly startMs: number,
  ) {
    this.end = total
    this.lastTakenMs = startMs
  }

  timeOf(index: number): number {
    return this.startMs + (index * 1_000) / this.perSecond
  }

  /** The index of the next arrival if it is due, otherwise null. */
  take(nowMs: number): number | null {
    if (this.taken === this.end || this.timeOf(this.taken) > nowMs) return null
    this.maxLagMs = Math.max(this.maxLagMs, nowMs - this.timeOf(this.taken))
    this.lastTakenMs = nowMs
    this.taken += 1
    return this.taken - 1
  }

  /** The time of the next arrival to be taken; null if all are taken. */
  get nextMs(): number | null {
    return this.taken === this.end ? null : this.timeOf(this.taken)
  }

  /** The number of arrivals taken so far. */
  get takenCount(): number {
    return this.taken
  }

  /** How late the next arrival is; 0 if none is due. */
  lagMs(nowMs: number): number {
    return this.taken === this.end ? 0 : Math.max(0, nowMs - this.timeOf(this.taken))
  }

  /** No arrival follows those that were taken. */
  stop(): void {
    this.end = this.taken
  }

  toJson(endMs: number): ScheduleJson {
    // The last arrival takes its share of the time too.
    const takingS = (this.lastTakenMs - this.startMs) / 1_000 + 1 / this.perSecond
    return {
      seconds: rounded((endMs - this.startMs) / 1_000),
      rate: { wanted: this.perSecond, reached: rounded(this.taken / takingS) },
      max_lag_ms: rounded(this.maxLagMs),
    }
  }
}

/** To three decimal places. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
