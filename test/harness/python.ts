import { installPython, PythonPackagesUnavailableError } from '#infra/python/venv.js'
import { isAvailable, MUST_RUN_ALL } from './tools.js'

/** The Python interpreter with the packages of infra/python/requirements.txt, which the global setup installs. */
export function pythonWithPackages(): Promise<string> {
  return installPython({ attempts: 1 })
}

/** Installs the packages. If that fails, prints the reason, or rejects if no suite may be skipped. */
export async function installPythonPackages(): Promise<void> {
  if (!isAvailable('python-packages')) return
  try {
    await installPython({ attempts: MUST_RUN_ALL ? 3 : 1 })
  } catch (error) {
    if (MUST_RUN_ALL || !(error instanceof PythonPackagesUnavailableError)) throw error
    process.stdout.write(`Skipping the suites that use Python packages: ${error.message}\n`)
  }
}
