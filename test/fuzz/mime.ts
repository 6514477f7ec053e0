import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { messageOf } from '#libs/runtime/errors.js'
import type { Finding, MimeThreadStart } from './mime-thread.js'
import type { FuzzRun, FuzzTarget } from './target.js'

const INPUT_BYTES = 4 * 1024 * 1024
/** An input of a few hundred kilobytes that takes longer counts as hanging. */
const HANGS_AFTER_MS = 60_000
const LOOK_EVERY_MS = 200
const SAY_EVERY_MS = 60_000
const MAX_HEAP_MIB = 2_048
/** More findings would not help. */
const MAX_KEPT = 50

/** Saves failing sources, one file for each kind of failure. */
class Findings {
  failures = 0
  private readonly kinds = new Set<string>()

  constructor(private readonly run: Pick<FuzzRun, 'folder' | 'say'>) {}

  get kept(): number {
    return this.kinds.size
  }

  async keep(source: Uint8Array, message: string): Promise<void> {
    this.failures += 1
    // The message without its numbers is the kind of failure.
    const kind = message.replace(/\d+/g, 'N').slice(0, 200)
    if (this.kinds.has(kind) || this.kinds.size >= MAX_KEPT) return
    this.kinds.add(kind)
    const { folder, say } = this.run
    const digest = createHash('sha256').update(source).digest('hex')
    const name = join(folder, `mime-${digest.slice(0, 16)}.eml`)
    await mkdir(folder, { recursive: true })
    await writeFile(name, source)
    say(`failed, kept as ${name}: ${message.slice(0, 500)}`)
  }
}

/**
 * Fuzzes the parsing of mail with checkMail. Failing sources are saved as files. A thread that hangs or dies is
 * replaced.
 */
export const fuzzMime: FuzzTarget = async ({ endsAtMs, mostInputs = Infinity, seed, folder, say }) => {
  const memory = { progress: new SharedArrayBuffer(8), input: new SharedArrayBuffer(INPUT_BYTES) }
  const counters = new Int32Array(memory.progress)
  const findings = new Findings({ folder, say })
  const begun = () => Atomics.load(counters, 0)
  const isOver = () => Date.now() >= endsAtMs || begun() >= mostInputs
  const saying = setInterval(() => say(`${begun()} sources, ${findings.failures} failures`), SAY_EVERY_MS)
  try {
    for (let next = seed; !isOver(); next = (next + 1_000_003) | 0) {
      await runThread({ ...memory, seed: next }, findings, { isOver, endsAtMs })
    }
  } finally {
    clearInterval(saying)
  }
  const { failures, kept } = findings
  say(`${begun()} sources from seed ${seed} on, ${failures} failures of ${kept} kinds`)
  return failures
}

/** Runs until the time is up, or the thread hangs or dies. */
async function runThread(
  start: MimeThreadStart,
  findings: Findings,
  { isOver, endsAtMs }: { isOver: () => boolean; endsAtMs: number },
): Promise<void> {
  const counters = new Int32Array(start.progress)
  const thread = new Worker(new URL('./mime-thread.js', import.meta.url), {
    workerData: start,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
  })
  let lost: Error | null = null
  const writes: Promise<void>[] = []
  thread.on('error', (error) => (lost = new Error(messageOf(error))))
  thread.on('exit', (code) => (lost ??= new Error(`the thread ended with ${code}`)))
  thread.on('message', ({ seed, message, source }: Finding) => {
    writes.push(findings.keep(source, `seed ${seed}: ${message}`))
  })
  let [begun, sinceMs] = [Atomics.load(counters, 0), Date.now()]
  while (!isOver() && lost === null) {
    await pause(Math.min(LOOK_EVERY_MS, Math.max(endsAtMs - Date.now(), 1)))
    const now = Atomics.load(counters, 0)
    if (now !== begun) [begun, sinceMs] = [now, Date.now()]
    else if (Date.now() - sinceMs > HANGS_AFTER_MS) lost = new Error(`hangs for ${HANGS_AFTER_MS} ms`)
  }
  if (lost !== null) {
    const underWay = Buffer.from(new Uint8Array(start.input, 0, counters[1]))
    await findings.keep(underWay, messageOf(lost))
  }
  await thread.terminate()
  await Promise.all(writes)
}
