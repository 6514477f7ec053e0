import { parentPort, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import { messageOf } from '#libs/runtime/errors.js'
import { checkMail } from './mime-laws.js'
import { anySource } from './mime-sources.js'

/** Memory shared with the watching thread: the current input. */
interface WatchedMemory {
  /** 32-bit numbers: inputs started, length of the current input. */
  progress: SharedArrayBuffer
  /** The current input. */
  input: SharedArrayBuffer
}

/** A source for which a property does not hold. */
export interface Finding {
  seed: number
  message: string
  source: Uint8Array
}

export interface MimeThreadStart extends WatchedMemory {
  /** Seed of the first round; each round adds one. */
  seed: number
}

const ROUND = 200

/** Runs in a worker thread until it is terminated, and reports the findings of each round. */
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
        checkMail(source)
      } catch (error) {
        const finding: Finding = { seed: round, message: messageOf(error), source }
        parentPort?.postMessage(finding)
      }
    }
    // Lets the thread be terminated.
    await new Promise(setImmediate)
  }
}

await run(workerData as MimeThreadStart)
