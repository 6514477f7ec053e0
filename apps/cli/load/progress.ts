import type { Writable } from 'node:stream'

export interface ProgressCounts {
  /** From 0 to 1. */
  done: number
  sent: number
  errors: number
  /** How late the next arrival is. */
  lagMs: number
}

const BAR_WIDTH = 20
const LINE_INTERVAL_S = 10

/** Shows how far a run is: a bar once a second on a terminal, otherwise a line every ten seconds. */
export class Progress {
  private readonly timer: NodeJS.Timeout
  private seconds = 0
  private sentBefore = 0
  private updatedMs = performance.now()
  private hasBar = false

  constructor(
    private readonly output: Writable & { isTTY?: boolean },
    private readonly counts: () => ProgressCounts,
  ) {
    this.timer = setInterval(() => this.update(), 1_000)
  }

  /** Removes the bar. */
  end(): void {
    clearInterval(this.timer)
    if (this.hasBar) this.output.write('\r\u001b[K')
  }

  private update(): void {
    this.seconds += 1
    const isTerminal = this.output.isTTY === true
    if (!isTerminal && this.seconds % LINE_INTERVAL_S !== 0) return
    const nowMs = performance.now()
    const { done, sent, errors, lagMs } = this.counts()
    const perSecond = ((sent - this.sentBefore) * 1_000) / (nowMs - this.updatedMs)
    this.sentBefore = sent
    this.updatedMs = nowMs
    const figures = `${Math.round(perSecond)}/s, ${sent} sent, ${errors} errors, lag ${Math.round(lagMs)} ms`
    const percent = `${Math.floor(done * 100)} %`.padStart(5)
    if (isTerminal) {
      const bar = '#'.repeat(Math.floor(done * BAR_WIDTH)).padEnd(BAR_WIDTH, '.')
      this.output.write(`\r\u001b[K[${bar}] ${percent}  ${figures}`)
      this.hasBar = true
    } else this.output.write(`${percent.trim()}, ${figures}\n`)
  }
}
