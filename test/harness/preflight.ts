import { missingTools, MUST_RUN_ALL } from './tools.js'

// Runs before the suites: lists the programs that the machine lacks.
const missing = missingTools()
if (missing.length > 0) {
  const list = missing.map(({ tool, get }) => `${tool} (${get})`).join(', ')
  const outcome = MUST_RUN_ALL ? 'Suites that use these fail' : 'Skipping the suites that use'
  process.stdout.write(`${outcome}: ${list}\n`)
}
