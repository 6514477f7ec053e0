import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Gauge, type Registry } from 'prom-client'
import type { Settings } from '#libs/runtime/config/settings.js'

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
