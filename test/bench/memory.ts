import { setTimeout as pause } from 'node:timers/promises'
import { anonymousBytes } from '#libs/runtime/process/metrics.js'
import type { Subject } from './subject.js'

export const MIB = 1024 * 1024
const SAMPLES = 10
const SAMPLE_EVERY_MS = 300

/** In bytes. */
export interface Memory {
  heap: number
  resident: number
  /** Resident memory without mapped files; null except on Linux. */
  anonymous: number | null
}

/** Several samples over three seconds. The lowest one has the least garbage that is about to be collected. */
export async function samplesOf<Sample>(read: () => Sample | Promise<Sample>): Promise<Sample[]> {
  const samples: Sample[] = []
  for (let sample = 0; sample < SAMPLES; sample++) {
    await pause(SAMPLE_EVERY_MS)
    samples.push(await read())
  }
  return samples
}

export async function memoryOf(subject: Subject): Promise<Memory> {
  const samples = await samplesOf<Memory>(async () => ({
    heap: await subject.metric('nodejs_heap_size_used_bytes'),
    resident: await subject.metric('process_resident_memory_bytes'),
    anonymous: anonymousBytes(subject.mayfly.pid),
  }))
  const least = (read: (sample: Memory) => number) => Math.min(...samples.map(read))
  const isKnown = samples.every(({ anonymous }) => anonymous !== null)
  return {
    heap: least(({ heap }) => heap),
    resident: least(({ resident }) => resident),
    anonymous: isKnown ? least(({ anonymous }) => anonymous ?? Infinity) : null,
  }
}
