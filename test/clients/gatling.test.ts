import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { runProgram } from '#test/harness/run-program.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'

/** Includes downloads from Maven Central, 63 MB at the first time. */
const WITHIN_MS = 300_000

describeWith('maven')('the simulation for Gatling', () => {
  let mayfly: SharedMayfly
  let folder: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    folder = await mkdtemp(join(tmpdir(), 'mayfly-gatling-'))
    const filter = (path: string) => basename(path) !== 'target'
    await cp('clients/gatling', folder, { recursive: true, filter })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  async function simulate(apiKey: string): Promise<{ code: number; output: string }> {
    const properties = ['-Dusers=5', '-Dduration=1', '-Dgatling.noReports=true']
    const env = { ...process.env, MAYFLY_URL: mayfly.url, MAYFLY_KEY: apiKey }
    const options = { cwd: folder, env, timeout: WITHIN_MS }
    const args = ['-B', '-ntp', 'gatling:test', ...properties]
    const { code, stdout: output } = await runProgram('mvn', args, options)
    return { code, output }
  }

  /** The last table that Gatling prints: how many requests of each name there were, succeeded and failed. */
  function requests(output: string): Record<string, number[]> {
    const table = output.slice(output.lastIndexOf('---- Requests'))
    const rows = table.matchAll(/^> (.+?) +\| +(\d+) \| +(\d+) \| +(\d+)$/gm)
    return Object.fromEntries([...rows].map(([, name = '', ...counts]) => [name, counts.map(Number)]))
  }

  it(
    'reads the code of each user',
    async () => {
      const { code, output } = await simulate(mayfly.apiKey)
      expect(requests(output)).toEqual({
        Global: [20, 20, 0],
        'create inbox': [5, 5, 0],
        'put in mail': [5, 5, 0],
        'wait for mail': [5, 5, 0],
        'delete inbox': [5, 5, 0],
      })
      expect(output).toContain('count of failed events is 0.0 : true')
      expect(code).toBe(0)
    },
    WITHIN_MS,
  )

  it(
    'fails with a wrong key',
    async () => {
      const { code, output } = await simulate('a-wrong-key')
      expect(requests(output)).toEqual({ Global: [5, 0, 5], 'create inbox': [5, 0, 5] })
      expect(output).toContain('count of failed events is 0.0 : false')
      expect(code).toBe(1)
    },
    WITHIN_MS,
  )
})
