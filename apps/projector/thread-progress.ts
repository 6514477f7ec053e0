/** What a parsing thread is started with. */
export interface ParseThreadData {
  memory: SharedArrayBuffer
  /** Its priority, from 0 to 19, as the operating system has it: the higher, the later its turn. */
  niceness: number
}

/** What a parsing thread and who watches it tell each other while the thread is busy: memory that both see. */
export class ThreadProgress {
  private readonly numbers: Float64Array

  constructor(
    readonly memory: SharedArrayBuffer = new SharedArrayBuffer(3 * Float64Array.BYTES_PER_ELEMENT),
  ) {
    this.numbers = new Float64Array(memory)
  }

  /** The place, among the mails that it was given, of the one that it reads. */
  get index(): number {
    return this.numbers[0] ?? 0
  }

  /** The thread's CPU time when it began that one; null if it has begun none, since it has not had its turn yet. */
  get startMs(): number | null {
    const startMs = this.numbers[1] ?? NaN
    return Number.isNaN(startMs) ? null : startMs
  }

  /** Whether it is to leave the mails behind that one. */
  get isToStop(): boolean {
    return this.numbers[2] === 1
  }

  begin(index: number, startMs: number): void {
    this.numbers[1] = startMs
    this.numbers[0] = index
  }

  stop(): void {
    this.numbers[2] = 1
  }

  /** Before the thread is given mails. */
  clear(): void {
    this.numbers.fill(0)
    this.numbers[1] = NaN
  }
}
