import { call } from '#test/harness/client.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { startBombing, type Bombing } from '#test/hostile/bombing.js'
import { showingTimes } from '#test/hostile/showing-times.js'

/**
 * After its 250 a mail is to be on GET within it, whatever another account is sent. That is asked of a machine that has
 * nothing else to do, as with `npm run test:faults`; beside other suites just that it comes.
 */
const SHOWN_WITHIN_MS = process.env.MAYFLY_FAULT_ROUNDS === undefined ? 20_000 : 2_000
const MAILS = process.env.MAYFLY_FAULT_ROUNDS === undefined ? 15 : 100
/** So many of them in inboxes of as many partitions. */
const INBOXES = 8

describe('one account’s bombs, on one machine', () => {
  delaysNobodyElse('embedded')
})

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('one account’s bombs, on Kafka and Redis', () => {
  delaysNobodyElse('distributed')
})

function delaysNobodyElse(engine: EngineName): void {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ engine })
  })
  afterAll(() => mayfly.dispose())

  it('do not delay another’s mail past two seconds', async () => {
    const bombing = await startBombing(mayfly, { connections: 3, inboxes: 12 })
    try {
      const times = await showingTimes(mayfly, { mails: MAILS, inboxes: INBOXES })
      expect(Math.max(...times)).toBeLessThan(SHOWN_WITHIN_MS)
      await until('a bomb that was read in part', () => isAnyReadInPart(bombing))
    } finally {
      await bombing.stop()
    }
    // They are accepted no faster than they are read.
    expect(bombing.accepted()).toBeGreaterThan(3)
  })
}

/** Whether any of the bombs that are shown has warnings. */
async function isAnyReadInPart({ target, inboxes }: Bombing): Promise<boolean> {
  const lists = await Promise.all(
    inboxes.map(({ id }) => call<{ warnings: unknown[] }[]>(target, 'GET', `/v1/inboxes/${id}/messages`)),
  )
  return lists.flatMap(({ body }) => body).some(({ warnings }) => warnings.length > 0)
}
