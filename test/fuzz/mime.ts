import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { messageOf } from '#libs/fault/message-of.js'
import type { FuzzTarget } from './target.js'
import type { MimeThreadStart } from './mime-thread.js'

const INPUT_BYTES = 4 * 1024 * 1024
/** One input of a few hundred kilobytes that takes longer hangs. */
const HANGS_AFTER_MS = 60_000
const LOOK_EVERY_MS = 200
const SAY_EVERY_MS = 60_000
const MOST_HEAP_MIB = 2_048
/** More of the same would say no more. */
const MOST_KEPT = 50

/**
 * The MIME entrance: whatever bytes come, what checkMail says holds. What does not is kept as a file, and the
 * thread goes on; one that hangs or dies is replaced.
 */
export const fuzzMime: FuzzTarget = async ({ endsAtMs, mostInputs = Infinity, seed, folder, say }) => {
  const progress = new SharedArrayBuffer(8)
  const input = new SharedArrayBuffer(INPUT_BYTES)
  const counters = new Int32Array(progress)
  const kept = new Map<string, string>()
  let nextSeed = seed
  let failures = 0

  async function keep(source: Uint8Array, message: string): Promise<void> {
    failures += 1
    // Numbers apart, a message is a kind of failure.
    const kind = message.replace(/\d+/g, 'N').slice(0, 200)
    if (kept.has(kind) || kept.size >= MOST_KEPT) return
    const name = join(folder, `mime-${createHash('sha256').update(source).digest('hex').slice(0, 16)}.eml`)
    kept.set(kind, name)
    await mkdir(folder, { recursive: true })
    await writeFile(name, source)
    say(`failed, kept as ${name}: ${message.slice(0, 500)}`)
  }

  const isOver = () => Date.now() >= endsAtMs || Atomics.load(counters, 0) >= mostInputs

  function underWay(): Uint8Array {
    return Buffer.from(new Uint8Array(input, 0, counters[1]))
  }

  /** Until time is up, or the thread is lost. */
  async function runThread(): Promise<void> {
    const workerData: MimeThreadStart = { progress, input, seed: nextSeed }
    const thread = new Worker(new URL('./mime-thread.js', import.meta.url), {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MIB },
    })
    let lost: Error | null = null
    const writes: Promise<void>[] = []
    thread.on('error', (error) => (lost = new Error(messageOf(error))))
    thread.on('exit', (code) => (lost ??= new Error(`the thread ended with ${code}`)))
    thread.on('message', (failure: { seed: number; message: string; source: Uint8Array }) => {
      writes.push(keep(failure.source, `seed ${failure.seed}: ${failure.message}`))
    })
    let [begun, sinceMs] = [Atomics.load(counters, 0), Date.now()]
    while (!isOver() && lost === null) {
      await pause(Math.min(LOOK_EVERY_MS, Math.max(endsAtMs - Date.now(), 1)))
      const now = Atomics.load(counters, 0)
      if (now !== begun) [begun, sinceMs] = [now, Date.now()]
      else if (Date.now() - sinceMs > HANGS_AFTER_MS) lost = new Error(`hangs for ${HANGS_AFTER_MS} ms`)
    }
    if (lost !== null) await keep(underWay(), messageOf(lost))
    await thread.terminate()
    await Promise.all(writes)
    nextSeed = (nextSeed + 1_000_003) | 0
  }

  const saying = setInterval(
    () => say(`${Atomics.load(counters, 0)} sources, ${failures} failures`),
    SAY_EVERY_MS,
  )
  try {
    while (!isOver()) await runThread()
  } finally {
    clearInterval(saying)
  }
  say(`${Atomics.load(counters, 0)} sources from seed ${seed} on, ${failures} failures of ${kept.size} kinds`)
  return failures
}
