import { installPython, NoPythonPackagesError } from '#infra/python/venv.js'
import { canHave, MUST_RUN_ALL } from './tools.js'

/** The interpreter that has the packages of infra/python/requirements.txt, which the global setup installs. */
export function pythonWithPackages(): Promise<string> {
  return installPython({ attempts: 1 })
}

/** Installs them before the suites that use them. If that fails, says why, or rejects if no suite may be skipped. */
export async function installPythonPackages(): Promise<void> {
  if (!canHave('python-packages')) return
  try {
    await installPython({ attempts: MUST_RUN_ALL ? 3 : 1 })
  } catch (error) {
    if (MUST_RUN_ALL || !(error instanceof NoPythonPackagesError)) throw error
    process.stdout.write(`Skipping the suites that use Python packages: ${error.message}\n`)
  }
}
