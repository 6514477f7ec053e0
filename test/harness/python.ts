import { bringSchemathesis } from '#infra/schemathesis/venv.js'

/** The Python that has what infra/schemathesis/requirements.txt names, which the global setup has brought by now. */
export function broughtPython(): Promise<string> {
  return bringSchemathesis({ attempts: 1 })
}
