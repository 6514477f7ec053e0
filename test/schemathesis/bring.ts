import { bringSchemathesis, NoSchemathesisError } from '#infra/schemathesis/venv.js'
import { canHave, MUST_RUN_ALL } from '#test/harness/tools.js'

/** Brings schemathesis before the suites that run it; says why where it can't, or rejects where nothing may be skipped. */
export async function bringPython(): Promise<void> {
  if (!canHave('schemathesis')) return
  try {
    await bringSchemathesis({ attempts: MUST_RUN_ALL ? 3 : 1 })
  } catch (error) {
    if (MUST_RUN_ALL || !(error instanceof NoSchemathesisError)) throw error
    process.stdout.write(`Skipping the suites that use schemathesis: ${error.message}\n`)
  }
}
