import { readFileSync } from 'node:fs'
import type { Document } from '#apps/api/openapi/openapi-json.js'
import { renderClientTypes } from '#infra/docs/client-types.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { RecordingProxy } from './recording-proxy.js'
import { runScenario, type Step } from './scenario-runner.js'

const SCENARIOS = JSON.parse(readFileSync('clients/scenarios.json', 'utf8')) as {
  name: string
  steps: Step[]
}[]
/** Operations for programs that run Mayfly, and pages for people. Clients leave them out. */
const LEFT_OUT = ['getHealth', 'getReadiness', 'getMetrics', 'getProblemPage', 'getOpenApi', 'getDocs']

describe('the TypeScript client', () => {
  let mayfly: Mayfly
  let proxy: RecordingProxy

  beforeAll(async () => {
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' }
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true, env })
    proxy = await RecordingProxy.start(mayfly.url)
  })
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]()
    await mayfly.dispose()
  })

  it.each(SCENARIOS)('$name', async ({ steps }) => {
    await runScenario(steps, { url: proxy.url, apiKey: mayfly.apiKey, smtp: `127.0.0.1:${mayfly.smtpPort}` })
  })

  it('has a method for each operation, which the scenarios call', async () => {
    const document = (await (await fetch(`${mayfly.url}/openapi.json`)).json()) as Document
    const requests = [...proxy.requests]
    const missing = Object.entries(document.paths).flatMap(([path, operations]) => {
      const pattern = `${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`
      return Object.entries(operations)
        .filter(
          ([method]) =>
            !requests.some((each) => new RegExp(`^${method.toUpperCase()} ${pattern}`).test(each)),
        )
        .map(([, operation]) => operation)
        .filter((operation) => operation['x-alias-of'] === undefined)
        .map(({ operationId }) => operationId)
    })
    expect(missing).toEqual(LEFT_OUT)
  })

  it('has types that agree with the OpenAPI document', async () => {
    const document = (await (await fetch(`${mayfly.url}/openapi.json`)).json()) as Document
    const rendered = await renderClientTypes(document)
    expect(rendered).toBe(readFileSync('clients/typescript/src/openapi.ts', 'utf8'))
  })
})
