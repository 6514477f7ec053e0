import { startMayfly } from '#test/harness/mayfly.js'
import { runSchemathesis } from './run.js'

// `npm run schemathesis`: the API as it is built, on a data folder of its own.
const mayfly = await startMayfly({ hasAnalytics: true })
try {
  const { exitCode } = await runSchemathesis(mayfly, (text) => process.stdout.write(text))
  process.exitCode = exitCode ?? 1
} finally {
  await mayfly.dispose()
}
