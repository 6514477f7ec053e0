import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { runSchemathesis } from './run.js'

describeWith('python-packages')('the API, checked against its document by schemathesis', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true, env: NO_DNS })
  })
  afterAll(() => mayfly.dispose())

  it('answers everything as the document says', async () => {
    const { exitCode, output } = await runSchemathesis(mayfly)
    const failures = output.slice(output.search(/^=+ (?:ERRORS|FAILURES)/m))
    expect({ exitCode, failures: exitCode === 0 ? '' : failures }).toEqual({ exitCode: 0, failures: '' })
    // schemathesis has tested every operation.
    expect(output).toMatch(/Selected: (\d+)\/\1\n +Tested: \1\n/)
    expect(Number(/(\d+) generated/.exec(output)?.[1])).toBeGreaterThan(1_000)
  }, 1_200_000)
})
