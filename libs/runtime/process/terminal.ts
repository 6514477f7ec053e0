import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'

export const LOGS_TO_TERMINAL = isatty(2)

/**
 * Calls `run` each time that Enter is pressed, but not while the last call is running. Returns false, and reads nothing,
 * if this process has no terminal.
 */
export function onEnter(run: () => Promise<void>): boolean {
  if (!isatty(0) || !isatty(1)) return false
  const { stdin } = process
  let isRunning = false
  stdin.on('data', () => {
    if (isRunning) return
    isRunning = true
    void run().finally(() => (isRunning = false))
  })
  // The terminal was closed.
  stdin.on('error', () => undefined)
  // The system stops a process in the background (`npm start &`) that reads from its terminal.
  const readInForeground = () => (isInForeground() ? stdin.resume() : stdin.pause())
  process.on('SIGCONT', readInForeground)
  readInForeground()
  return isInForeground()
}

/**
 * Whether the process group of this process is the one that its terminal sends input to. False if the system has neither
 * /proc nor `ps`.
 */
function isInForeground(): boolean {
  try {
    const [own, foreground] = process.platform === 'linux' ? groupsOfLinux() : groupsOfPs()
    return own !== undefined && own === foreground
  } catch {
    return false
  }
}

/** From proc_pid_stat(5): the name of the program, in parentheses, may contain spaces and parentheses. */
function groupsOfLinux(): (string | undefined)[] {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const [, , processGroup, , , foregroundGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return [processGroup, foregroundGroup]
}

function groupsOfPs(): (string | undefined)[] {
  const args = ['-o', 'pgid=,tpgid=', '-p', String(process.pid)]
  return execFileSync('ps', args, { encoding: 'utf8' }).trim().split(/\s+/)
}
