import { call } from '#test/harness/client.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { startBombing, type Bombing } from '#test/hostile/bombing.js'
import { visibilityDelays } from '#test/hostile/visibility-delays.js'

/**
 * Maximum time from a 250 until GET shows the mail, despite any mail to another account. The real bound holds on a
 * machine that runs nothing else, as with `npm run test:faults`. Beside other suites, a loose one is used.
 */
const VISIBLE_WITHIN_MS = process.env.MAYFLY_FAULT_ROUNDS === undefined ? 20_000 : 2_000
const MAILS = process.env.MAYFLY_FAULT_ROUNDS === undefined ? 15 : 100
/** In as many partitions. */
const INBOXES = 8

describe('bombs of one account, on one machine', () => {
  expectNoDelayOfOthers('embedded')
})

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('bombs of one account, on Kafka and Redis', () => {
  expectNoDelayOfOthers('distributed')
})

function expectNoDelayOfOthers(engine: EngineName): void {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ engine })
  })
  afterAll(() => mayfly.dispose())

  it('do not delay mail of another account by more than two seconds', async () => {
    const bombing = await startBombing(mayfly, { connections: 3, inboxes: 12 })
    try {
      const times = await visibilityDelays(mayfly, { mails: MAILS, inboxes: INBOXES })
      expect(Math.max(...times)).toBeLessThan(VISIBLE_WITHIN_MS)
      await until('a bomb that was read in part', () => isAnyParsedInPart(bombing))
      // Bombs are accepted only as fast as they are parsed, but they are accepted.
      await until('more bombs than connections', () => bombing.accepted() > 3)
    } finally {
      await bombing.stop()
    }
  })
}

/** Whether any visible bomb was parsed only in part, and so has warnings. */
async function isAnyParsedInPart({ target, inboxes }: Bombing): Promise<boolean> {
  const lists = await Promise.all(
    inboxes.map(({ id }) => call<{ warnings: unknown[] }[]>(target, 'GET', `/v1/inboxes/${id}/messages`)),
  )
  return lists.flatMap(({ body }) => body).some(({ warnings }) => warnings.length > 0)
}
