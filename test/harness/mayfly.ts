import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A Mayfly process under test, on ports of its own. */
export interface Mayfly {
  url: string
  smtpPort: number
  dataDir: string
  apiKey: string
  pid: number
  /** Everything printed so far. */
  output(): { stdout: string; stderr: string }
  /** Sends a signal; resolves with the exit code once the process has ended, null where a signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>
  /** Starts it anew on the same folder, once it has ended. */
  startAgain(): Promise<Mayfly>
  /** Ends it, where it runs, and removes its folder. */
  dispose(): Promise<void>
}

export interface StartOptions {
  env?: Readonly<Record<string, string>>
  dataDir?: string
  apiKey?: string
  /** Runs it as this user and group. */
  user?: number
  /** A command that runs it, its own arguments in front: it must leave the process id as it is. */
  through?: readonly [command: string, ...args: string[]]
}

/** A process that did not come up, with what it said. */
export class NotStartedError extends Error {
  override readonly name = 'NotStartedError'

  constructor(
    readonly exitCode: number | null,
    readonly stdout: string,
    readonly stderr: string,
  ) {
    super(`mayfly ended with ${String(exitCode)} before it listened: ${stderr}`)
  }
}

const MAIN = join(process.cwd(), 'dist/apps/standalone/main.js')
const NODE_FLAGS = ['--enable-source-maps', '--disable-warning=ExperimentalWarning']

/** Runs the standalone build. Resolves once it listens; rejects with NotStartedError where it ends before. */
export async function startMayfly(options: StartOptions = {}): Promise<Mayfly> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'mayfly-')))
  const apiKey = options.apiKey ?? 'a-key-for-the-end-to-end-suites'
  const command = [process.execPath, ...NODE_FLAGS, MAIN]
  const [program = '', ...args] = [...(options.through ?? []), ...command]
  const child = spawn(program, args, {
    ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      MAYFLY_DATA_DIR: dataDir,
      MAYFLY_HTTP_PORT: '0',
      MAYFLY_SMTP_PORT: '0',
      MAYFLY_BOOTSTRAP_API_KEY: apiKey,
      ...options.env,
    },
  })
  const printed = { stdout: '', stderr: '' }
  const { stdout, stderr, pid } = child
  if (pid === undefined) throw new Error('mayfly could not be spawned')
  stdout.setEncoding('utf8').on('data', (text: string) => (printed.stdout += text))
  stderr.setEncoding('utf8').on('data', (text: string) => (printed.stderr += text))
  const listening = await Promise.race([listeningLine(child), exited(child)])
  if (typeof listening !== 'object' || listening === null) {
    throw new NotStartedError(listening, printed.stdout, printed.stderr)
  }
  const mayfly: Mayfly = {
    ...listening,
    dataDir,
    apiKey,
    pid,
    output: () => ({ ...printed }),
    async end(signal) {
      const ended = exited(child)
      child.kill(signal)
      return ended
    },
    startAgain: () => startMayfly({ ...options, dataDir, apiKey }),
    async dispose() {
      await mayfly.end('SIGKILL')
      await rm(dataDir, { recursive: true, force: true })
    },
  }
  return mayfly
}

async function listeningLine(child: ChildProcess): Promise<{ url: string; smtpPort: number }> {
  const { stderr } = child
  if (stderr === null) throw new Error('the process has no standard error')
  const lines = createInterface({ input: stderr })
  return new Promise((resolve) => {
    lines.on('line', (line) => {
      if (!line.includes('"msg":"listening"')) return
      const { httpPort, smtpPort } = JSON.parse(line) as { httpPort: number; smtpPort: number }
      resolve({ url: `http://127.0.0.1:${httpPort}`, smtpPort })
    })
  })
}

async function exited(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  await once(child, 'exit')
  return child.exitCode
}
