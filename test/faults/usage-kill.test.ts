import { join } from 'node:path'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import { createInbox, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { countedInTables, countedOnLog, summedInTables, sumsOf, untilAllIsTaken } from './counted.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'
import { openLog } from './log-file.js'

const ROUNDS = Number(process.env.MAYFLY_FAULT_ROUNDS ?? 5)
const ROUND_MS = 30_000
const WRITES_EVERY_MS = 1_000

describe('usage, with the one process killed under load', () => {
  const ledger = new Ledger()
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
    const inbox = await createInbox(mayfly)
    ledger.inboxes.set(inbox.id, inbox)
  })
  afterAll(() => mayfly.dispose())

  it(
    `is counted exactly as the log has it, over ${ROUNDS} rounds on one folder`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await loadFor(mayfly, ledger, 200 + Math.random() * 2 * WRITES_EVERY_MS)
        mayfly = await mayfly.startAgain()
      }
      await loadFor(mayfly, ledger, WRITES_EVERY_MS, 'SIGTERM')
      // What the other roles told last came behind the sink's end: it is counted after the next start.
      mayfly = await mayfly.startAgain()
      await untilAllIsTaken(mayfly)
      await mayfly.end('SIGTERM')
      const log = await openLog(mayfly.dataDir)
      try {
        // What was gathered has been written at the end: there is nothing to wait for.
        const onLog = await countedOnLog(log)
        await tablesMustAgree(mayfly.dataDir, onLog)
        expect(onLog['mayfly.inbox.message-received']).toBeGreaterThan(ROUNDS)
        process.stdout.write(`usage: ${ROUNDS} kills, counted ${JSON.stringify(onLog)}\n`)
      } finally {
        await log.close()
      }
    },
    (ROUNDS + 2) * ROUND_MS,
  )
})

/** Load until the process is ended by a signal, that long after its first promise. */
async function loadFor(
  mayfly: Mayfly & Target,
  ledger: Ledger,
  ms: number,
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<void> {
  const load = startLoad(mayfly, ledger, { senders: 3, creators: 1, readers: 1 })
  await until('a promise', () => load.promises() > 0)
  const endAt = performance.now() + ms
  await until('the moment', () => performance.now() >= endAt)
  await mayfly.end(signal)
  await load.stop()
}

async function tablesMustAgree(
  dataDir: string,
  onLog: Awaited<ReturnType<typeof countedOnLog>>,
): Promise<void> {
  const client = await chdbClient(join(dataDir, 'usage', 'tables'))
  if (client === null) throw new Error('chDB is not installed')
  try {
    await client.command({ query: 'USE mayfly' })
    expect(await countedInTables(client)).toEqual(onLog)
    expect(await summedInTables(client)).toEqual(Array(3).fill(sumsOf(onLog)))
  } finally {
    await client.close()
  }
}
