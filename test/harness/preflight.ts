import { missingTools, MUST_RUN_ALL } from './tools.js'

// Runs before the suites: lists those that will be skipped, or fails if none may be skipped.
const missing = missingTools()
if (missing.length > 0) {
  const list = missing.map(({ tool, get }) => `${tool} (${get})`).join(', ')
  process.stdout.write(`${MUST_RUN_ALL ? 'Missing' : 'Skipping the suites that use'}: ${list}\n`)
  if (MUST_RUN_ALL) process.exit(1)
}
