import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const REQUIREMENTS = join(process.cwd(), 'infra/schemathesis/requirements.txt')
const WITHIN_MS = 300_000
const PAUSE_MS = 3_000

/** schemathesis is not there, and pip could not bring it. */
export class NoSchemathesisError extends Error {
  override readonly name = 'NoSchemathesisError'
}

/** The folder of schemathesis's virtual environment, named for what is in it: whole, or not there. */
export function venvFolder(): string {
  const requirements = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  return join(process.cwd(), 'node_modules/.cache/mayfly', `schemathesis-${requirements}`)
}

export function hasVenv(): boolean {
  return existsSync(venvFolder())
}

/**
 * Resolves with the Python that has schemathesis, once it is there, from PyPI where need be (30 MB), in so many
 * attempts. Rejects with NoSchemathesisError.
 */
export async function bringSchemathesis({ attempts }: { attempts: number }): Promise<string> {
  const folder = venvFolder()
  for (let attempt = 1; !hasVenv(); attempt += 1) {
    try {
      await install(folder)
    } catch (error) {
      if (attempt >= attempts) throw new NoSchemathesisError(reasonOf(error))
      await pause(attempt * PAUSE_MS)
    }
  }
  return join(folder, 'bin/python')
}

async function install(folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true })
  const unfinished = await mkdtemp(`${folder}.`)
  const bounds = { timeout: WITHIN_MS, killSignal: 'SIGKILL', maxBuffer: 1 << 26 } as const
  try {
    await run('python3', ['-m', 'venv', unfinished], bounds)
    const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '-r', REQUIREMENTS]
    await run(join(unfinished, 'bin/python'), pip, bounds)
    // Its programs name the folder that they were installed in; `python -m` does not.
    await rename(unfinished, folder)
  } catch (error) {
    // Another process was quicker.
    if (!hasVenv()) throw error
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

function reasonOf(error: unknown): string {
  const { stderr, stdout } = error as { stderr?: unknown; stdout?: unknown }
  const said = [stderr, stdout].filter((text) => typeof text === 'string' && text.trim() !== '')
  const advice = 'schemathesis is fetched once from PyPI, which takes Python 3 with venv and a network'
  return `pip could not bring schemathesis. ${advice}.\n${String(said[0] ?? error).slice(0, 1_000)}`
}
