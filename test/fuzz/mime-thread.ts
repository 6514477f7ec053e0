import { parentPort, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import { messageOf } from '#libs/runtime/errors.js'
import { checkMail } from './mime-laws.js'
import { anySource } from './mime-sources.js'

/** Shared with who watches: what is being read, and since when one after the other. */
interface WatchedMemory {
  /** Of 32-bit numbers: inputs begun, length of the one under way. */
  progress: SharedArrayBuffer
  /** The input under way. */
  input: SharedArrayBuffer
}

/** A source for which something does not hold. */
export interface Finding {
  seed: number
  message: string
  source: Uint8Array
}

export interface MimeThreadStart extends WatchedMemory {
  /** Each round's seed is the one before it and one more. */
  seed: number
}

const ROUND = 200

/** Runs in a thread of its own until it is ended: round after round, each told with what it found. */
async function run({ progress, input, seed }: MimeThreadStart): Promise<void> {
  const counters = new Int32Array(progress)
  const bytes = new Uint8Array(input)
  for (let round = seed; ; round = (round + 1) | 0) {
    for (const source of fc.sample(anySource, { seed: round, numRuns: ROUND })) {
      const kept = source.subarray(0, bytes.length)
      bytes.set(kept)
      counters[1] = kept.length
      Atomics.add(counters, 0, 1)
      try {
        await checkMail(source)
      } catch (error) {
        const finding: Finding = { seed: round, message: messageOf(error), source }
        parentPort?.postMessage(finding)
      }
    }
    // Ending the thread takes its turn.
    await new Promise(setImmediate)
  }
}

await run(workerData as MimeThreadStart)
