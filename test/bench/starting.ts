import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_SETTINGS, startMayfly } from '#test/harness/mayfly.js'
import { buildUnderTest } from '#test/harness/mayfly-process.js'
import { cpuTimeOf } from './cpu-time.js'
import type { Section } from './section.js'

const SOURCES = ['apps', 'libs', 'clients', 'infra', 'test', 'package.json', '.swcrc']
const WITHIN_MS = 60_000

/** The time until it listens: from a build, and with `npm start` from the sources, the first and the second time. */
export const starting: Section = async ({ plan }) => {
  const fromBuild: number[] = []
  const cpu: number[] = []
  const fromSource: number[] = []
  const again: number[] = []
  for (let round = 0; round < plan.rounds; round++) {
    const started = await startFromBuild()
    fromBuild.push(started.seconds)
    if (started.cpuSeconds !== null) cpu.push(started.cpuSeconds)
    const npmStart = await secondsFromSource()
    fromSource.push(npmStart.first)
    again.push(npmStart.second)
  }
  return [
    { name: 'start from a build', unit: 's', rounds: fromBuild, target: { atMost: 3 } },
    ...(cpu.length > 0 ? [{ name: 'CPU of that', unit: 's', rounds: cpu, target: { atMost: 0.8 } }] : []),
    { name: 'start from source, npm start', unit: 's', rounds: fromSource, target: { atMost: 15 } },
    { name: 'npm start again, nothing changed', unit: 's', rounds: again, target: { atMost: 2.5 } },
  ]
}

/** The CPU time is null on a system without /proc. */
async function startFromBuild(): Promise<{ seconds: number; cpuSeconds: number | null }> {
  const started = performance.now()
  const mayfly = await startMayfly({ env: DEFAULT_SETTINGS })
  const seconds = (performance.now() - started) / 1000
  const cpu = cpuTimeOf([mayfly.pid])
  await mayfly.dispose()
  return { seconds, cpuSeconds: cpu === null ? null : cpu.all / 1000 }
}

/** Runs on a copy, because `npm start` changes dist/, from which this process runs. */
async function secondsFromSource(): Promise<{ first: number; second: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-start-'))
  try {
    // Another build may be of a version without some of them.
    for (const source of SOURCES.filter((each) => existsSync(join(buildUnderTest(), each))))
      await cp(join(buildUnderTest(), source), join(folder, source), { recursive: true })
    await symlink(join(buildUnderTest(), 'node_modules'), join(folder, 'node_modules'))
    return { first: await secondsOfNpmStart(folder), second: await secondsOfNpmStart(folder) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function secondsOfNpmStart(folder: string): Promise<number> {
  const started = performance.now()
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, MAYFLY_HTTP_PORT: '0', MAYFLY_SMTP_PORT: '0' }
  // A separate process group, because npm starts child processes.
  const child = spawn('npm', ['start'], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const { stderr, pid } = child
  if (pid === undefined) throw new Error('npm could not be spawned')
  const ended = once(child, 'exit')
  let printed = ''
  const { promise: listening, resolve, reject } = Promise.withResolvers<number>()
  stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    if (printed.includes('"msg":"listening"')) resolve((performance.now() - started) / 1000)
  })
  child.once('exit', () => reject(new Error(`npm start ended: ${printed}`)))
  const timer = setTimeout(() => reject(new Error(`npm start does not listen: ${printed}`)), WITHIN_MS)
  try {
    return await listening
  } finally {
    clearTimeout(timer)
    if (child.exitCode === null) process.kill(-pid, 'SIGKILL')
    await ended
  }
}
