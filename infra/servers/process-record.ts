import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * The process that serves from a folder. Process ids are reused, so the record also has the start time of the process.
 */

const FILE = 'pid'
const BOUNDS = { encoding: 'utf8', timeout: 5_000 } as const
const BOOT = '/proc/sys/kernel/random/boot_id'

export function recordProcess(folder: string, pid: number): void {
  writeFileSync(join(folder, FILE), `${pid} ${startOf(pid) ?? 'ended'}\n`)
}

/** The recorded process if it is still running, otherwise null. */
export function recordedProcess(folder: string): number | null {
  const path = join(folder, FILE)
  if (!existsSync(path)) return null
  const [, pid, begin] = /^(\d+) (.+)\n$/.exec(readFileSync(path, 'utf8')) ?? []
  return pid !== undefined && startOf(Number(pid)) === begin ? Number(pid) : null
}

/** The start time of a process, which distinguishes it from others with its id; null if it does not run. */
function startOf(pid: number): string | null {
  try {
    if (existsSync(BOOT)) return startOnLinux(pid)
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], BOUNDS).stdout.trim() || null
  } catch {
    return null
  }
}

/** The start time is field 22 (proc(5)). The name in field 2 may contain any character, so counting starts after it. */
function startOnLinux(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? null : `${readFileSync(BOOT, 'utf8').trim()} ${fields[19] ?? ''}`
}
