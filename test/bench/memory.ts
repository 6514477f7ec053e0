import { setTimeout as pause } from 'node:timers/promises'
import { anonymousBytes } from '#libs/runtime/process/resident-memory.js'
import type { Subject } from './subject.js'

export const MIB = 1024 * 1024
const SAMPLES = 10
const SAMPLE_EVERY_MS = 300

/** Bytes. */
export interface Memory {
  heap: number
  resident: number
  /** Resident memory that is no file's: Linux alone tells it apart. */
  anonymous: number | null
}

/** The least of several looks over three seconds: what a collection is about to free is not kept. */
export async function memoryOf(subject: Subject): Promise<Memory> {
  const looks: Memory[] = []
  for (let look = 0; look < SAMPLES; look++) {
    await pause(SAMPLE_EVERY_MS)
    looks.push({
      heap: await subject.metric('nodejs_heap_size_used_bytes'),
      resident: await subject.metric('process_resident_memory_bytes'),
      anonymous: anonymousBytes(subject.mayfly.pid),
    })
  }
  const least = (read: (look: Memory) => number) => Math.min(...looks.map(read))
  const isKnown = looks.every(({ anonymous }) => anonymous !== null)
  return {
    heap: least(({ heap }) => heap),
    resident: least(({ resident }) => resident),
    anonymous: isKnown ? least(({ anonymous }) => anonymous ?? Infinity) : null,
  }
}
