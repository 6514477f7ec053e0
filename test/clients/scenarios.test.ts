import { readFileSync } from 'node:fs'
import { ClientUnderTest, LEFT_OUT } from './client-under-test.js'
import { runScenario, type Step } from './scenario-runner.js'

const SCENARIOS = JSON.parse(readFileSync('clients/scenarios.json', 'utf8')) as {
  name: string
  steps: Step[]
}[]

describe('the scenarios of clients, in TypeScript', () => {
  let client: ClientUnderTest

  beforeAll(async () => {
    client = await ClientUnderTest.start()
  })
  afterAll(() => client[Symbol.asyncDispose]())

  it.each(SCENARIOS)('$name', async ({ steps }) => {
    await runScenario(steps, client.server)
  })

  it('call every operation', async () => {
    expect(await client.uncalledOperations()).toEqual(LEFT_OUT)
  })
})
