import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Target } from './client.js'
import { distributedEnvironment, engineUnderTest } from './mayfly.js'
import { COMPILE_CACHE } from './mayfly-process.js'
import type { Clock } from './mayfly-with-clock-process.js'

/** All roles in one process, on a clock that only the test moves. */
export interface MayflyWithClock extends Target {
  dataDir: string
  /** Resolves once the roles see the new time, which stands still. */
  setClock(nowMs: number): Promise<void>
  /** Resolves once the roles see a clock that runs, that much ahead of the real one. */
  runAhead(aheadMs: number): Promise<void>
  /** As `runAhead`, that much further than before. */
  skip(ms: number): Promise<void>
  /** By a clock that runs ahead. */
  now(): number
  /** Resolves once everything is closed. Idempotent. */
  close(): Promise<void>
}

const API_KEY = 'a-key-for-the-end-to-end-suites'
const PROCESS_FILE = join(process.cwd(), 'dist/test/harness/mayfly-with-clock-process.js')

/** Starts all roles in a child process, on the engine under test. Resolves once they listen. */
export async function startWithClock(
  dataDir: string,
  nowMs: number,
  env: Readonly<Record<string, string>> = {},
): Promise<MayflyWithClock> {
  const child = fork(PROCESS_FILE, {
    env: {
      ...COMPILE_CACHE,
      PATH: process.env.PATH,
      TEST_NOW_MS: String(nowMs),
      MAYFLY_DATA_DIR: dataDir,
      MAYFLY_HTTP_PORT: '0',
      MAYFLY_SMTP_PORT: '0',
      MAYFLY_PARSE_THREADS: '1',
      MAYFLY_BOOTSTRAP_API_KEY: API_KEY,
      ...(engineUnderTest() === 'distributed' ? distributedEnvironment(basename(dataDir)) : {}),
      ...env,
    },
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const exited = once(child, 'exit')
  const started = (await Promise.race([once(child, 'message'), exited])) as unknown[]
  const [target] = started as [Pick<Target, 'url' | 'smtpPort'> | number]
  if (typeof target !== 'object') throw new Error(`the roles ended with ${target} before they ran`)
  const set = async (clock: Clock) => {
    const isSet = once(child, 'message')
    child.send(clock)
    await isSet
  }
  let aheadMs = 0
  const runAhead = (ms: number) => {
    aheadMs = ms
    return set({ aheadMs })
  }
  return {
    ...target,
    apiKey: API_KEY,
    dataDir,
    setClock: (nowMs) => set({ nowMs }),
    runAhead,
    skip: (ms) => runAhead(aheadMs + ms),
    now: () => Date.now() + aheadMs,
    async close() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** Creates an empty temporary folder. */
export async function makeFolder(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'mayfly-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
