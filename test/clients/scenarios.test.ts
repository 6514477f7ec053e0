import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter } from 'node:path'
import { promisify } from 'node:util'
import type { Document } from '#apps/api/openapi/openapi-json.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'
import { RecordingProxy } from './recording-proxy.js'
import { runScenario, type Step } from './scenario-runner.js'

const run = promisify(execFile)
const SCENARIOS = JSON.parse(readFileSync('clients/scenarios.json', 'utf8')) as {
  name: string
  steps: Step[]
}[]
/** Operations for programs that run Mayfly, and pages for people. Clients leave them out. */
const LEFT_OUT = ['getHealth', 'getReadiness', 'getMetrics', 'getProblemPage', 'getOpenApi', 'getDocs']
const WITHIN_MS = 120_000

describe('the scenarios of clients', () => {
  let mayfly: Mayfly
  let proxy: RecordingProxy
  let document: Document

  beforeAll(async () => {
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' }
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true, env })
    document = (await (await fetch(`${mayfly.url}/openapi.json`)).json()) as Document
  })
  afterAll(() => mayfly.dispose())

  /** Each client has a proxy of its own, so that its requests show which operations it has called. */
  function useProxy(): void {
    beforeAll(async () => {
      proxy = await RecordingProxy.start(mayfly.url)
    })
    afterAll(() => proxy[Symbol.asyncDispose]())
  }

  /** The ids of operations that no request to the proxy has called, without aliases. */
  function uncalledOperations(): string[] {
    return Object.entries(document.paths).flatMap(([path, operations]) => {
      const pattern = path.replaceAll(/\{\w+\}/g, '[^/]+')
      return Object.entries(operations)
        .filter(([, operation]) => operation['x-alias-of'] === undefined)
        .filter(([method]) => {
          const expression = new RegExp(`^${method.toUpperCase()} ${pattern}$`)
          return ![...proxy.requests].some((each) => expression.test(each))
        })
        .map(([, { operationId }]) => operationId)
    })
  }

  describe('in TypeScript', () => {
    useProxy()

    it.each(SCENARIOS)('$name', async ({ steps }) => {
      const smtp = `127.0.0.1:${mayfly.smtpPort}`
      await runScenario(steps, { url: proxy.url, apiKey: mayfly.apiKey, smtp })
    })

    it('call every operation', () => {
      expect(uncalledOperations()).toEqual(LEFT_OUT)
    })
  })

  describeWith('python-packages').each([
    { front: 'sync', options: [] },
    { front: 'async', options: ['--async'] },
  ])('in Python, $front', ({ options }) => {
    useProxy()

    it(
      'pass',
      async () => {
        const args = ['clients/python/tests/run_scenarios.py', ...options]
        const env = {
          PATH: process.env.PATH,
          PYTHONPATH: ['clients/python', 'clients/python/tests'].join(delimiter),
          PYTHONDONTWRITEBYTECODE: '1',
          MAYFLY_URL: proxy.url,
          MAYFLY_KEY: mayfly.apiKey,
          MAYFLY_SMTP: `127.0.0.1:${mayfly.smtpPort}`,
        }
        const python = await pythonWithPackages()
        const { stdout } = await run(python, args, { env, timeout: WITHIN_MS }).catch(
          (error: unknown) => error as { stdout: string },
        )
        expect(stdout).not.toMatch(/^not ok/m)
        expect(stdout.match(/^ok /gm)).toHaveLength(SCENARIOS.length)
      },
      WITHIN_MS,
    )

    it('call every operation', () => {
      expect(uncalledOperations()).toEqual(LEFT_OUT)
    })
  })
})
