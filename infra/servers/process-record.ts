import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * Which process serves from a folder. A process id is given again once its process has ended: the record holds
 * when the process began too, so that a stranger is never taken for it.
 */

const FILE = 'pid'
const BOUNDS = { encoding: 'utf8', timeout: 5_000 } as const
const BOOT = '/proc/sys/kernel/random/boot_id'

export function recordProcess(folder: string, pid: number): void {
  writeFileSync(join(folder, FILE), `${pid} ${beginOf(pid) ?? 'ended'}\n`)
}

/** The recorded process where it runs still; null if it has ended or there never was one. */
export function recordedProcess(folder: string): number | null {
  const path = join(folder, FILE)
  if (!existsSync(path)) return null
  const [, pid, begin] = /^(\d+) (.+)\n$/.exec(readFileSync(path, 'utf8')) ?? []
  return pid !== undefined && beginOf(Number(pid)) === begin ? Number(pid) : null
}

/** When the process began, in a form that no other process of its id has; null if none runs. */
function beginOf(pid: number): string | null {
  try {
    if (existsSync(BOOT)) return beginOnLinux(pid)
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], BOUNDS).stdout.trim() || null
  } catch {
    return null
  }
}

/** proc(5): behind the command's name, which may hold anything, the state is field 3 and the begin field 22. */
function beginOnLinux(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? null : `${readFileSync(BOOT, 'utf8').trim()} ${fields[19] ?? ''}`
}
