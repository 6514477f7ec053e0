import { execFileSync, spawn, type ChildProcessByStdio } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { MayflyError } from './errors.js'

export interface StartOptions {
  /** Settings of the server, such as MAYFLY_SMTP_TLS. */
  env?: Readonly<Record<string, string>>
  /** Milliseconds until it must be ready; 60,000 by default. */
  timeoutMs?: number
}

/** A server that this process has started. */
export interface MayflyServer extends AsyncDisposable {
  /** Where the API listens. */
  url: string
  apiKey: string
  /** Where it receives mail. */
  smtpHost: string
  smtpPort: number
  /** Stops it, and removes its data. */
  stop(): Promise<void>
}

const START_TIMEOUT_MS = 60_000
/** The lines that an error shows. */
const MAX_LINES = 20

/**
 * Starts a Mayfly server for a test run, with empty data, on free ports of 127.0.0.1. Resolves when it is ready;
 * rejects with MayflyError if it does not start. The package `mayfly` must be installed in the current folder's
 * project. The server also stops when this process ends.
 */
export async function startMayfly({
  env = {},
  timeoutMs = START_TIMEOUT_MS,
}: StartOptions = {}): Promise<MayflyServer> {
  const { node, main } = await findServer()
  const dataDir = await mkdtemp(join(tmpdir(), 'mayfly-'))
  const apiKey = `key-of-this-test-run-${randomBytes(16).toString('hex')}`
  const { PATH = '', HOME = '', TMPDIR = tmpdir() } = process.env
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', main], {
    env: {
      PATH,
      HOME,
      TMPDIR,
      // As under npm: the server ends by itself if this process is gone.
      npm_lifecycle_event: 'test',
      ...env,
      MAYFLY_DATA_DIR: dataDir,
      MAYFLY_HTTP_PORT: '0',
      MAYFLY_SMTP_PORT: '0',
      MAYFLY_BOOTSTRAP_API_KEY: apiKey,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  async function stop(): Promise<void> {
    child.ref()
    child.kill('SIGTERM')
    await ended
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    const { httpPort, smtpPort } = await whenListening(child, timeoutMs)
    const url = `http://127.0.0.1:${httpPort}`
    return { url, apiKey, smtpHost: '127.0.0.1', smtpPort, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    child.kill('SIGKILL')
    await stop()
    throw error
  }
}

/** The installed server and the Node version that it comes with. Builds the server if that was not done. */
async function findServer(): Promise<{ node: string; main: string }> {
  let manifest: string
  try {
    manifest = await realpath(
      createRequire(join(process.cwd(), 'package.json')).resolve('mayfly/package.json'),
    )
  } catch (error) {
    const fix = 'Install it, for example with `npm install --save-dev <folder of its repository>`.'
    throw new MayflyError(`The package mayfly is not installed in ${process.cwd()}. ${fix}`, { cause: error })
  }
  const root = dirname(manifest)
  const main = join(root, 'dist/apps/standalone/main.js')
  if (!existsSync(main))
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 2, 2] })
  const node = join(dirname(createRequire(manifest).resolve('node/package.json')), 'bin/node')
  return { node, main }
}

/** Resolves with the ports once the server has logged them. Later lines are discarded. */
async function whenListening(
  child: ChildProcessByStdio<null, null, Readable>,
  timeoutMs: number,
): Promise<{ httpPort: number; smtpPort: number }> {
  const lines: string[] = []
  return new Promise((resolve, reject) => {
    const fail = (reason: string) =>
      reject(new MayflyError([`Mayfly did not start: ${reason}`, ...lines.slice(-MAX_LINES)].join('\n')))
    const timer = setTimeout(() => fail(`it was not ready within ${timeoutMs} ms`), timeoutMs)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      fail(`it ended with ${String(code ?? signal)}`)
    })
    child.once('error', (error) => fail(error.message))
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.includes('"msg":"listening"')) {
        clearTimeout(timer)
        // Neither the server nor its log keeps this process from ending.
        child.unref()
        ;(child.stderr as Readable & { unref?: () => void }).unref?.()
        resolve(JSON.parse(line) as { httpPort: number; smtpPort: number })
      } else if (lines.length < 1_000) lines.push(line)
    })
  })
}
