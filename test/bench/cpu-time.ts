import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of processes and of each of their threads, in milliseconds since they started. */
export interface CpuTime {
  /** Includes threads that have ended. */
  all: number
  threads: ReadonlyMap<string, number>
}

/** One clock tick: USER_HZ is 100 on every Linux (proc(5)). */
const TICK_MS = 10

/** Null on a system without /proc. */
export function cpuTimeOf(pids: readonly number[]): CpuTime | null {
  try {
    const threads = pids.flatMap((pid) =>
      readdirSync(`/proc/${pid}/task`).map((id) => [id, msOf(`/proc/${pid}/task/${id}/stat`)] as const),
    )
    return {
      all: pids.reduce((sum, pid) => sum + msOf(`/proc/${pid}/stat`), 0),
      threads: new Map(threads),
    }
  } catch {
    return null
  }
}

export interface CpuSpent {
  all: number
  busiestThread: number
}

/** CPU time between two readings, in milliseconds. */
export function cpuSpent(before: CpuTime, after: CpuTime): CpuSpent {
  const ofThreads = [...after.threads].map(([id, ms]) => ms - (before.threads.get(id) ?? 0))
  return { all: after.all - before.all, busiestThread: Math.max(...ofThreads) }
}

/** The CPU time that processes spend on some work, in milliseconds; NaN on a system without /proc. */
export async function cpuMs(pids: readonly number[], work: () => Promise<unknown>): Promise<number> {
  const before = cpuTimeOf(pids)
  await work()
  const after = cpuTimeOf(pids)
  return before === null || after === null ? NaN : cpuSpent(before, after).all
}

/** User and system time: fields 14 and 15 (proc(5)). The name in field 2 may contain any character, so counting starts after it. */
function msOf(path: string): number {
  const stat = readFileSync(path, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
