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
const LINE_INTERVAL_MS = 10_000

const LINE_START = '\r\u001b[K'

/**
 * Shows how far a run is: a bar once a second on a terminal, otherwise a line every ten seconds. Returns a function that
 * ends this and removes the bar.
 */
export function showProgress(
  output: Writable & { isTTY?: boolean },
  counts: () => ProgressCounts,
): () => void {
  const isTerminal = output.isTTY === true
  let sentBefore = 0
  let updatedMs = performance.now()

  const update = () => {
    const nowMs = performance.now()
    const { done, sent, errors, lagMs } = counts()
    const perSecond = ((sent - sentBefore) * 1_000) / (nowMs - updatedMs)
    sentBefore = sent
    updatedMs = nowMs
    const figures = `${Math.round(perSecond)}/s, ${sent} sent, ${errors} errors, lag ${Math.round(lagMs)} ms`
    const percent = `${Math.floor(done * 100)} %`
    const bar = '#'.repeat(Math.floor(done * BAR_WIDTH)).padEnd(BAR_WIDTH, '.')
    output.write(
      isTerminal ? `${LINE_START}[${bar}] ${percent.padStart(5)}  ${figures}` : `${percent}, ${figures}\n`,
    )
  }
  const timer = setInterval(update, isTerminal ? 1_000 : LINE_INTERVAL_MS)
  return () => {
    clearInterval(timer)
    if (isTerminal) output.write(LINE_START)
  }
}
