import { join } from 'node:path'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import { createInbox, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import {
  rowCounts,
  eventCountsOnLog,
  figureTotals,
  expectedTotals,
  untilAnalyticsCaughtUp,
} from './usage-counts.js'
import { AcknowledgedWrites } from './acknowledged-writes.js'
import { startLoad } from './load.js'
import { openLog } from './stored-log.js'

const ROUNDS = Number(process.env.MAYFLY_FAULT_ROUNDS ?? 5)
const ROUND_MS = 90_000
const WRITES_EVERY_MS = 1_000

describe('usage, with the process killed under load', () => {
  const acknowledged = new AcknowledgedWrites()
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
    const inbox = await createInbox(mayfly)
    acknowledged.inboxes.set(inbox.id, inbox)
  })
  afterAll(() => mayfly.dispose())

  it(
    `is counted exactly as the log has it, over ${ROUNDS} rounds on one folder`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await loadFor(mayfly, acknowledged, 200 + Math.random() * 2 * WRITES_EVERY_MS)
        mayfly = await mayfly.restart()
      }
      await loadFor(mayfly, acknowledged, WRITES_EVERY_MS, 'SIGTERM')
      // The last events of the other roles follow the end of the sink. They are counted after the next start.
      mayfly = await mayfly.restart()
      await untilAnalyticsCaughtUp(mayfly)
      await mayfly.end('SIGTERM')
      const log = await openLog(mayfly.dataDir)
      try {
        // Buffered events are written at shutdown, so there is nothing to wait for.
        const onLog = await eventCountsOnLog(log)
        await verifyTables(mayfly.dataDir, onLog)
        expect(onLog['mayfly.inbox.message-received']).toBeGreaterThan(ROUNDS)
        process.stdout.write(`usage: ${ROUNDS} kills, counted ${JSON.stringify(onLog)}\n`)
      } finally {
        await log.close()
      }
    },
    (ROUNDS + 2) * ROUND_MS,
  )
})

/** Runs load, and ends the process by a signal some time after its first acknowledgement. */
async function loadFor(
  mayfly: Mayfly & Target,
  acknowledged: AcknowledgedWrites,
  ms: number,
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<void> {
  const load = startLoad(mayfly, acknowledged, { senders: 3, creators: 1, readers: 1 })
  await until('an acknowledgement', () => load.acknowledgements() > 0)
  const endAt = performance.now() + ms
  await until('the moment', () => performance.now() >= endAt)
  await mayfly.end(signal)
  await load.stop()
}

async function verifyTables(
  dataDir: string,
  onLog: Awaited<ReturnType<typeof eventCountsOnLog>>,
): Promise<void> {
  const client = await chdbClient(join(dataDir, 'usage', 'tables'))
  if (client === null) throw new Error('chDB is not installed')
  try {
    await client.command({ query: 'USE mayfly' })
    expect(await rowCounts(client)).toEqual(onLog)
    expect(await figureTotals(client)).toEqual(Array(3).fill(expectedTotals(onLog)))
  } finally {
    await client.close()
  }
}
