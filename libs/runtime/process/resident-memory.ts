import { readFileSync } from 'node:fs'
import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Logger } from 'pino'
import { Gauge, type Registry } from 'prom-client'
import type { Settings } from '#libs/runtime/config/settings.js'

const CHECK_EVERY_MS = 1_000
/** Utilization of the event loop, from 0 to 1. */
const IDLE_BELOW = 0.05
const IDLE_CHECKS = 60
const BUSY_ABOVE = 0.5
/** Growth by more than this is released without waiting for an idle time, which may never come. */
const GROWN_BYTES = 128 * 2 ** 20
/** V8 frees the buffers of collected objects in the background. */
const FREED_AFTER_MS = 2_000

/**
 * Returns memory to the system: once when the process has been idle for a minute, and whenever its memory has grown by
 * 128 MiB while it is not busy. V8 collects garbage only when something is allocated, so an idle process keeps its
 * garbage; and glibc keeps freed memory if it is fragmented by small blocks in use. Returns a function that stops this.
 */
export async function releaseUnusedMemory(
  logger: Pick<Logger, 'debug'>,
  checkEveryMs = CHECK_EVERY_MS,
): Promise<() => void> {
  const collectGarbage = exposedGc()
  const trim = await mallocTrim()
  let last: EventLoopUtilization = performance.eventLoopUtilization()
  let idleChecks = 0
  let minBytes = Infinity
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    idleChecks = utilization < IDLE_BELOW ? idleChecks + 1 : 0
    const bytes = anonymousBytes()
    minBytes = Math.min(minBytes, bytes ?? Infinity)
    const hasGrown = (bytes ?? 0) > minBytes + GROWN_BYTES && utilization < BUSY_ABOVE
    if (idleChecks !== IDLE_CHECKS && !hasGrown) return
    // Memory that can't be released is in use. It must not count as growth again.
    minBytes = Infinity
    collectGarbage()
    setTimeout(() => {
      trim?.()
      logger.debug({ beforeBytes: bytes, afterBytes: anonymousBytes() }, 'memory released')
    }, FREED_AFTER_MS).unref()
  }, checkEveryMs).unref()
  return () => clearInterval(timer)
}

export function measureMemory(registry: Registry, { memoryMib }: Pick<Settings, 'memoryMib'>): void {
  new Gauge({
    name: 'mayfly_memory_limit_bytes',
    help: 'Memory that the process may use (MAYFLY_MEMORY_MIB).',
    registers: [registry],
  }).set(memoryMib * 2 ** 20)
  new Gauge({
    name: 'mayfly_anonymous_memory_bytes',
    help:
      'Resident memory that does not belong to files. The rest of process_resident_memory_bytes is pages of mapped ' +
      'files, which the system reclaims when it needs them. Linux only.',
    registers: [registry],
    collect() {
      this.set(anonymousBytes() ?? NaN)
    },
  })
}

/** Resident memory that does not belong to files (RssAnon); null if the system does not report it. */
export function anonymousBytes(pid: number | 'self' = 'self'): number | null {
  try {
    const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kib === undefined ? null : Number(kib) * 1024
  } catch {
    return null
  }
}

/** V8's `gc()`, also if the process was started without --expose-gc. */
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
    // Garbage is collected nevertheless.
    return null
  }
}
