import { existsSync, readFileSync } from 'node:fs'

/** Resident memory of a process that is no file's; null where the system does not tell, as Linux alone does. */
export function anonymousBytes(pid: number): number | null {
  const path = `/proc/${pid}/status`
  if (!existsSync(path)) return null
  const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(path, 'utf8')) ?? []
  return kib === undefined ? null : Number(kib) * 1024
}
