import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const REQUIREMENTS = join(process.cwd(), 'infra/python/requirements.txt')
const WITHIN_MS = 300_000
const PAUSE_MS = 3_000

/** The Python packages that suites use are not installed, and pip could not install them. */
export class PythonPackagesUnavailableError extends Error {
  override readonly name = 'PythonPackagesUnavailableError'
}

/** The folder of the virtual environment, named by a hash of its requirements: either complete or missing. */
export function venvFolder(): string {
  const requirements = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  return join(process.cwd(), 'node_modules/.cache/mayfly', `python-${requirements}`)
}

export function hasVenv(): boolean {
  return existsSync(venvFolder())
}

/**
 * Resolves with the Python interpreter that has the packages of requirements.txt, which pip installs from PyPI if
 * they are missing, in up to that many attempts. Rejects with PythonPackagesUnavailableError.
 */
export async function installPython({ attempts }: { attempts: number }): Promise<string> {
  const folder = venvFolder()
  for (let attempt = 1; !hasVenv(); attempt += 1) {
    try {
      await install(folder)
    } catch (error) {
      if (attempt >= attempts) throw new PythonPackagesUnavailableError(reasonOf(error))
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
    // The scripts have the original folder hard-coded; `python -m` works after a rename.
    await rename(unfinished, folder)
  } catch (error) {
    // Another process has finished first.
    if (!hasVenv()) throw error
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

function reasonOf(error: unknown): string {
  const { stderr, stdout } = error as { stderr?: unknown; stdout?: unknown }
  const outputs = [stderr, stdout].filter((text) => typeof text === 'string' && text.trim() !== '')
  const advice = 'They are installed once from PyPI, which takes Python 3 with venv and a network'
  return `pip could not install the Python packages. ${advice}.\n${String(outputs[0] ?? error).slice(0, 1_000)}`
}
