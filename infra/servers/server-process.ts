import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { recordProcess } from './process-record.js'
import { requireProgram } from './programs.js'

/** The lifetime of a server. */
export type Life =
  /** It runs until it is stopped. The file `pid` next to its log identifies its process. */
  | 'detached'
  /** It ends with the process that started it, however that ends, and its folder is removed. */
  | { endsWithOwner: true; removing: string | null }

export interface Launch {
  /** Its name in messages. */
  name: string
  command: readonly [program: string, ...args: string[]]
  /** Its output is appended to this file. */
  logPath: string
  life: Life
}

/*
 * Starts a guard process and then becomes the server. The guard reads a pipe (3) from the owner: a line means that the
 * server has ended; the end of the pipe means that the owner has ended, so the guard kills the server.
 */
const GUARDED = `
folder=$1; shift
(
  trap '' HUP INT TERM
  read -r line <&3 && exit
  kill -9 $$
  # Twice, since what is killed may write for a moment yet.
  for seconds in 0.2 1; do sleep $seconds; [ -z "$folder" ] || rm -rf "$folder"; done
) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&-
`
const POLL_EVERY_MS = 50
const END_WITHIN_MS = 60_000
const LOG_LINES_SHOWN = 15
/** Signals that do not end a process by default. */
const HARMLESS: ReadonlySet<NodeJS.Signals> = new Set(['SIGSTOP', 'SIGCONT', 'SIGCHLD', 'SIGURG', 'SIGWINCH'])

/** A server's process. */
export class ServerProcess {
  private readonly exit: Promise<unknown>

  private constructor(
    private readonly launch: Launch,
    private readonly child: ChildProcess,
    readonly pid: number,
  ) {
    this.exit = once(child, 'exit')
    child.unref()
    const guard = child.stdio[3]
    if (guard instanceof Socket) {
      guard.unref()
      // Fails if the guard was killed, which does not matter.
      guard.on('error', () => guard.destroy())
      child.once('exit', () => guard.end('ended\n'))
    }
  }

  /** Starts the process. Resolves once `isReady`; rejects with its last output if it ends before or takes too long. */
  static async start(
    launch: Launch,
    isReady: () => Promise<boolean>,
    withinMs: number,
  ): Promise<ServerProcess> {
    const server = await ServerProcess.spawn(launch)
    try {
      await server.until('ready', isReady, withinMs)
    } catch (error) {
      await server.end('SIGKILL')
      throw error
    }
    return server
  }

  private static async spawn(launch: Launch): Promise<ServerProcess> {
    const { command, life, logPath } = launch
    requireProgram(command[0])
    const log = openSync(logPath, 'a')
    try {
      const [program, ...args] = command
      const child =
        life === 'detached'
          ? spawn(program, args, { stdio: ['ignore', log, log], detached: true })
          : spawn('sh', ['-c', GUARDED, launch.name, life.removing ?? '', ...command], {
              stdio: ['ignore', log, log, 'pipe'],
              // A separate process group: at Ctrl-C the owner stops the server after its clients.
              detached: true,
            })
      await once(child, 'spawn')
      if (child.pid === undefined) throw new Error(`${launch.name} has no process`)
      if (life === 'detached') recordProcess(dirname(logPath), child.pid)
      return new ServerProcess(launch, child, child.pid)
    } finally {
      closeSync(log)
    }
  }

  hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Sends a signal. If the signal ends processes, resolves once the process has ended. */
  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.hasEnded()) return
    this.child.kill(signal)
    if (HARMLESS.has(signal)) return
    const bound = new AbortController()
    const late = pause(END_WITHIN_MS, 'late', { signal: bound.signal }).catch(() => 'in time')
    const first = await Promise.race([this.exit, late])
    bound.abort()
    if (first === 'late')
      throw new Error(`${this.launch.name} did not end within ${END_WITHIN_MS} ms of ${signal}`)
  }

  /** Polls until `isReady`; rejects with the last output if the server ends before or takes too long. */
  async until(what: string, isSo: () => Promise<boolean>, withinMs: number): Promise<void> {
    const deadline = Date.now() + withinMs
    while (!(await isSo())) {
      if (this.hasEnded()) throw this.failure(`ended before it was ${what}`)
      if (Date.now() > deadline) throw this.failure(`was not ${what} within ${withinMs} ms`)
      await pause(POLL_EVERY_MS)
    }
  }

  private failure(what: string): Error {
    const { name, logPath } = this.launch
    const lines = readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-LOG_LINES_SHOWN)
    return new Error(`${name} ${what}; ${logPath} ends with:\n${lines.join('\n')}`)
  }
}
