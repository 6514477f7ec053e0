import { call, createInbox } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { sumOf, untilCounted, usageOf } from '#test/harness/usage.js'

describe('usage that is not counted', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    // Without analytics, the distributed engine needs no ClickHouse.
    const env = { MAYFLY_COUNT_USAGE: 'false', CLICKHOUSE_URL: '' }
    mayfly = await startMayfly({ isOneProcess: true, env })
  })
  afterAll(() => mayfly.dispose())

  it('is answered as unavailable, and everything else works', async () => {
    await createInbox(mayfly)
    for (const path of ['/v1/usage', '/v1/usage/report?label=run:1', '/v1/usage/export?format=csv']) {
      const problem = { status: 503, code: 'read-model-unavailable', detail: /MAYFLY_COUNT_USAGE is false/ }
      expectProblem(await call(mayfly, 'GET', path), problem)
    }
    const { body } = await call<{ usage: unknown }[]>(mayfly, 'GET', '/v1/keys')
    expect(body.map(({ usage }) => usage)).toEqual([null])
    expect(mayfly.output().stderr).toContain('usage is not counted: MAYFLY_COUNT_USAGE is false')
  })

  it('is counted after a later start with analytics', async () => {
    expect(await mayfly.end('SIGTERM')).toBe(0)
    const { dataDir } = mayfly
    mayfly = await startMayfly({ dataDir, hasAnalytics: true, isOneProcess: true })
    // Includes the requests for usage itself.
    const { inboxes } = await untilCounted(
      async () => sumOf(await usageOf(mayfly)),
      (sum) => sum.inboxes > 0 && sum.requests >= 5,
    )
    expect(inboxes).toBe(1)
  })
})
