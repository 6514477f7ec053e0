import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeDeadline } from '#libs/runtime/timing.js'

/** The exit code of a process, or the signal that ended it. */
export type Ending = number | NodeJS.Signals

/** One process of Mayfly that listens. */
export interface MayflyProcess {
  pid: number
  /** The fields of its log line `listening`. */
  listening: { httpPort?: number; smtpPort?: number; smtpsPort?: number; smtpCaFile?: string }
  /** Everything printed so far. */
  output(): { stdout: string; stderr: string }
  /** Sends a signal; resolves once the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ending>
  /** Sends a signal that does not end the process. */
  signal(signal: NodeJS.Signals): void
}

export interface ProcessOptions {
  /** The app whose main file runs. */
  app: 'standalone' | 'api' | 'smtp' | 'projector' | 'lifecycle' | 'webhooks' | 'analytics'
  env: Readonly<Record<string, string>>
  /** Runs it as this user and group. */
  user?: number | undefined
  /** A command that runs it, with arguments. It must keep the process id. */
  through?: readonly [command: string, ...args: string[]] | undefined
}

/** A process ended before it listened. Has the output of the process. */
export class NotStartedError extends Error {
  override readonly name = 'NotStartedError'

  constructor(
    readonly ending: Ending,
    readonly stdout: string,
    readonly stderr: string,
  ) {
    super(`mayfly ended with ${ending} before it listened: ${stderr}`)
  }
}

/** Shorter than a test's timeout, so that the error shows the output of a process that hangs. */
const LISTENS_WITHIN_MS = 100_000
const NODE_FLAGS = [
  '--max-semi-space-size=16',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
]
/** Shared by the hundreds of processes that start from one build. */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: join(process.cwd(), 'node_modules/.cache/compiled') }

/** The project folder whose build runs: this one, unless the benchmark compares it with another one. */
export function buildUnderTest(): string {
  return process.env.TEST_BUILD ?? process.cwd()
}

/** Runs the build of an app. Resolves once it listens; rejects with NotStartedError if it ends before that. */
export async function startProcess({ app, env, user, through }: ProcessOptions): Promise<MayflyProcess> {
  const main = join(buildUnderTest(), 'dist/apps', app, 'main.js')
  const [program = '', ...args] = [...(through ?? []), process.execPath, ...NODE_FLAGS, main]
  const child = spawn(program, args, {
    ...(user === undefined ? {} : { uid: user, gid: user }),
    stdio: ['ignore', 'pipe', 'pipe'],
    // As under npm: the process ends by itself if its parent is gone.
    env: { PATH: process.env.PATH, npm_lifecycle_event: 'test', ...COMPILE_CACHE, ...env },
  })
  const printed = { stdout: '', stderr: '' }
  const { stdout, stderr, pid } = child
  if (pid === undefined) throw new Error('mayfly could not be spawned')
  stdout.setEncoding('utf8').on('data', (text: string) => (printed.stdout += text))
  stderr.setEncoding('utf8').on('data', (text: string) => (printed.stderr += text))
  const listening = await beforeDeadline(
    LISTENS_WITHIN_MS,
    Promise.race([listeningLine(child), exited(child)]),
  ).catch((error: unknown) => {
    child.kill('SIGKILL')
    printed.stderr += `\nkilled: ${String(error)}`
    return 'SIGKILL' as const
  })
  if (typeof listening !== 'object') {
    throw new NotStartedError(listening, printed.stdout, printed.stderr)
  }
  return {
    pid,
    listening,
    output: () => ({ ...printed }),
    async end(signal) {
      const ended = exited(child)
      child.kill(signal)
      return ended
    },
    signal: (signal) => void child.kill(signal),
  }
}

async function listeningLine(child: ChildProcess): Promise<MayflyProcess['listening']> {
  const { stderr } = child
  if (stderr === null) throw new Error('the process has no standard error')
  const lines = createInterface({ input: stderr })
  return new Promise((resolve) => {
    lines.on('line', (line) => {
      if (line.includes('"msg":"listening"')) resolve(JSON.parse(line) as MayflyProcess['listening'])
    })
  })
}

async function exited(child: ChildProcess): Promise<Ending> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode ?? child.signalCode ?? 'SIGKILL'
}
