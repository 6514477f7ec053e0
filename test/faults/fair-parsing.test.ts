import { messagesOf, type Target } from '#test/harness/client.js'
import { startMayfly, type EngineName, type Mayfly } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { startBombing } from '#test/hostile/bombing.js'
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
      expect(await warningsOf(bombing.target, bombing.inboxes[0]?.id ?? '')).toContain(true)
    } finally {
      await bombing.stop()
    }
    // They are accepted no faster than they are read.
    expect(bombing.accepted()).toBeGreaterThan(3)
  })
}

/** Whether each of an inbox's first messages has one. */
async function warningsOf(target: Target, inboxId: string): Promise<boolean[]> {
  const messages = (await messagesOf(target, inboxId, 1)) as unknown as { warnings: unknown[] }[]
  return messages.map(({ warnings }) => warnings.length > 0)
}
