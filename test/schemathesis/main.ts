import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly } from '#test/harness/mayfly.js'
import { runSchemathesis } from './run.js'

// `npm run schemathesis`: runs schemathesis against the built API, on a temporary data folder.
const mayfly = await startMayfly({ hasAnalytics: true, env: NO_DNS })
try {
  const { exitCode } = await runSchemathesis(mayfly, (text) => process.stdout.write(text))
  process.exitCode = exitCode ?? 1
} finally {
  await mayfly.dispose()
}
