import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeDeadline } from '#libs/runtime/timing.js'

/** The exit code, or the signal that a process ended by. */
export type Ending = number | NodeJS.Signals

/** One process of Mayfly's that listens. */
export interface MayflyProcess {
  pid: number
  /** What its line `listening` says. */
  listening: { httpPort?: number; smtpPort?: number; smtpsPort?: number; smtpCaFile?: string }
  /** Everything printed so far. */
  output(): { stdout: string; stderr: string }
  /** Sends a signal; resolves once the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ending>
  /** Sends a signal that does not end it. */
  signal(signal: NodeJS.Signals): void
}

export interface ProcessOptions {
  /** Whose main file runs. */
  app: 'standalone' | 'api' | 'smtp' | 'projector' | 'lifecycle' | 'webhooks' | 'analytics'
  env: Readonly<Record<string, string>>
  /** Runs it as this user and group. */
  user?: number | undefined
  /** A command that runs it, its own arguments in front: it must leave the process id as it is. */
  through?: readonly [command: string, ...args: string[]] | undefined
}

/** A process that did not come up, with what it said. */
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

/** Less than a test has, so that what hangs shows what it said. */
const LISTENS_WITHIN_MS = 100_000
const NODE_FLAGS = [
  '--max-semi-space-size=16',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
]
/** Hundreds of processes start from one build: each finds what an earlier one compiled. */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: join(process.cwd(), 'node_modules/.cache/compiled') }

/** The project folder whose build runs: this one's, unless the benchmark compares it with another. */
export function buildUnderTest(): string {
  return process.env.TEST_BUILD ?? process.cwd()
}

/** Runs the build of an app. Resolves once it listens; rejects with NotStartedError if it ends before. */
export async function startProcess({ app, env, user, through }: ProcessOptions): Promise<MayflyProcess> {
  const main = join(buildUnderTest(), 'dist/apps', app, 'main.js')
  const [program = '', ...args] = [...(through ?? []), process.execPath, ...NODE_FLAGS, main]
  const child = spawn(program, args, {
    ...(user === undefined ? {} : { uid: user, gid: user }),
    stdio: ['ignore', 'pipe', 'pipe'],
    // As under npm it ends by itself where this process does without ending it.
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
