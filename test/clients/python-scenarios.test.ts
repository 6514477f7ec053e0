import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter } from 'node:path'
import { promisify } from 'node:util'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'
import { ClientUnderTest, LEFT_OUT } from './client-under-test.js'

const run = promisify(execFile)
const SCENARIOS = JSON.parse(readFileSync('clients/scenarios.json', 'utf8')) as unknown[]
const WITHIN_MS = 120_000

describeWith('python-packages')('the scenarios of clients, in Python', () => {
  it('pass in the synchronous and in the asynchronous client', async () => {
    await Promise.all([runPython([]), runPython(['--async'])])
  })

  async function runPython(options: string[]): Promise<void> {
    await using client = await ClientUnderTest.start()
    const { url, apiKey, smtp } = client.server
    const args = ['clients/python/tests/run_scenarios.py', ...options]
    const env = {
      PATH: process.env.PATH,
      PYTHONPATH: ['clients/python', 'clients/python/tests'].join(delimiter),
      PYTHONDONTWRITEBYTECODE: '1',
      MAYFLY_URL: url,
      MAYFLY_KEY: apiKey,
      MAYFLY_SMTP: smtp,
    }
    const python = await pythonWithPackages()
    const { stdout } = await run(python, args, { env, timeout: WITHIN_MS }).catch(
      (error: unknown) => error as { stdout: string },
    )
    expect(stdout).not.toMatch(/^not ok/m)
    expect(stdout.match(/^ok /gm)).toHaveLength(SCENARIOS.length)
    expect(await client.uncalledOperations()).toEqual(LEFT_OUT)
  }
})
