import { readFileSync } from 'node:fs'
import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Logger } from 'pino'
import { Gauge, type Registry } from 'prom-client'

const LOOK_EVERY_MS = 1_000
/** Of the main thread's time. */
const IDLE_BELOW = 0.05
const IDLE_LOOKS = 60
const BUSY_ABOVE = 0.5
/** More than this is not left to an idle time that may never come. */
const GROWN_BYTES = 128 * 2 ** 20
/** V8 frees the buffers of collected objects in threads of its own. */
const FREED_AFTER_MS = 2_000

/**
 * Gives memory back to the system: once in each time that the process has been idle for a minute, and when its memory
 * has grown by 128 MiB and it is not busy. V8 collects garbage when something is allocated, so a process with little
 * to do keeps its garbage; and glibc keeps what was freed while small blocks in use lie between. Returns a function
 * that ends it.
 */
export async function releaseUnusedMemory(
  logger: Pick<Logger, 'debug'>,
  lookEveryMs = LOOK_EVERY_MS,
): Promise<() => void> {
  const collectGarbage = exposedGc()
  const trim = await mallocTrim()
  let last: EventLoopUtilization = performance.eventLoopUtilization()
  let idleLooks = 0
  let leastBytes = Infinity
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    idleLooks = utilization < IDLE_BELOW ? idleLooks + 1 : 0
    const bytes = anonymousBytes()
    leastBytes = Math.min(leastBytes, bytes ?? Infinity)
    const hasGrown = (bytes ?? 0) > leastBytes + GROWN_BYTES && utilization < BUSY_ABOVE
    if (idleLooks !== IDLE_LOOKS && !hasGrown) return
    // What is still there afterwards is in use: it counts as growth no more.
    leastBytes = Infinity
    collectGarbage()
    setTimeout(() => {
      trim?.()
      logger.debug({ beforeBytes: bytes, afterBytes: anonymousBytes() }, 'memory released')
    }, FREED_AFTER_MS).unref()
  }, lookEveryMs).unref()
  return () => clearInterval(timer)
}

export function measureAnonymousMemory(registry: Registry): void {
  new Gauge({
    name: 'mayfly_anonymous_memory_bytes',
    help:
      'Resident memory that is no file: what the process itself needs. The rest of process_resident_memory_bytes is ' +
      'pages of mapped files, which the system takes back when it needs them. Linux only.',
    registers: [registry],
    collect() {
      this.set(anonymousBytes() ?? NaN)
    },
  })
}

/** Resident memory that is no file; null if the system does not tell it apart. */
export function anonymousBytes(pid: number | 'self' = 'self'): number | null {
  try {
    const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kib === undefined ? null : Number(kib) * 1024
  } catch {
    return null
  }
}

/** `gc()` without the flag --expose-gc, which not every way of starting a process would have. */
export function exposedGc(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

/** malloc_trim(3); null if the C library is not glibc, or the package that calls it is not installed. */
async function mallocTrim(): Promise<(() => void) | null> {
  try {
    const { default: koffi } = await import('koffi')
    const trim = koffi.load('libc.so.6').func('int malloc_trim(size_t pad)') as (pad: number) => number
    return () => void trim(0)
  } catch {
    // Garbage is collected all the same.
    return null
  }
}
