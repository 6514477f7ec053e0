import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UsageQueries, UsageQuery } from '#libs/ports/usage/usage-store.js'
import { timesOf, type Figure } from './figure.js'
import type { Section, SectionContext } from './section.js'
import { ACCOUNT_KEYS, BUSY_ACCOUNT, BUSY_KEY, fillTables, RUN_MAILS, sizesOf } from './filled-tables.js'
import { dashboardFigures } from './usage-dashboards.js'
import { recordingCost } from './usage-recording.js'
import { appendUsage, bareInsertRate, countingRate, openLog, openStore } from './usage-sink.js'

const DAY_MS = 86_400_000
/** Events of one round: enough that the second for which the last ones are buffered matters little. */
const COUNTED_EVENTS = 2_000_000
const COUNTED_PER_SECOND = { atLeast: 100_000 }
const OF_BARE_INSERTS = { atLeast: 0.5 }
const A_YEAR_MS = { atMost: 100 }
const QUERY_ROUNDS = 9

/** The rate of counting usage, the cost of recording it, and the latency of queries over many events. */
export const usage: Section = async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-bench-usage-'))
  try {
    return [...(await counting(context, folder)), ...(await querying(context, folder))]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function counting({ plan, say }: SectionContext, folder: string): Promise<Figure[]> {
  const { rounds } = plan
  const log = await openLog(join(folder, 'events'))
  try {
    await appendUsage(log, COUNTED_EVENTS)
    say(`${COUNTED_EVENTS} usage events on the log`)
    const [ours, theirs]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round += 1) {
      theirs.push(await bareInsertRate(join(folder, `bare-${round}`), COUNTED_EVENTS))
      ours.push(await countingRate(log, join(folder, `counted-${round}`), COUNTED_EVENTS))
      say(`${Math.round(ours.at(-1) ?? 0)} counted a second, ${Math.round(theirs.at(-1) ?? 0)} inserted`)
    }
    const cost = await recordingCost(log)
    const baseline = { name: 'bare inserts', rounds: theirs }
    return [
      { name: 'usage events counted', unit: 'events/s', rounds: ours, target: COUNTED_PER_SECOND },
      { name: 'the same', unit: 'events/s', rounds: ours, baseline, target: OF_BARE_INSERTS },
      { name: 'recording a request, main thread', unit: 'µs', rounds: [cost.synchronous] },
      { name: 'recording a request, CPU until durable', unit: 'µs', rounds: [cost.cpu] },
    ]
  } finally {
    await log.close()
  }
}

async function querying({ plan, say }: SectionContext, folder: string): Promise<Figure[]> {
  const tables = join(folder, 'stored')
  const started = performance.now()
  await fillTables(tables, plan.storedEvents)
  say(`${plan.storedEvents} events stored in ${Math.round((performance.now() - started) / 1_000)} s`)
  const store = await openStore(tables)
  const figures: Figure[] = []
  try {
    for (const [name, query] of Object.entries(usageQueries(store.queries))) {
      const times = await timesOf(QUERY_ROUNDS, query)
      const target = name === A_YEAR ? { target: A_YEAR_MS } : {}
      figures.push({ name: `${name}, p50`, unit: 'ms', rounds: times, ...target })
    }
  } finally {
    await store.close()
  }
  const sizes = await sizesOf(tables)
  return [
    ...figures,
    ...(await dashboardFigures(tables)),
    ...sizes
      .filter(({ rows }) => rows > 100)
      .map(({ table, rows, bytes }) => ({
        ...{ name: `${table} on disk, a million rows`, unit: 'MB', rounds: [bytes / rows] },
        note: `${(rows / 1e6).toFixed(2)} million rows.`,
      })),
  ]
}

const A_YEAR = 'a year of a busy key by day'

function usageQueries(queries: UsageQueries): Record<string, () => Promise<unknown>> {
  const now = Date.now()
  const figures = async (days: number, changed: Partial<UsageQuery>) => {
    const rows = await queries.figures({
      ...{
        owner: { accountId: BUSY_ACCOUNT, keyId: null },
        from: new Date(now - days * DAY_MS),
        to: new Date(now),
      },
      ...{ interval: 'hour', grouping: { by: 'none' }, labels: [], limit: 10_000 },
      ...changed,
    })
    if (rows === null || rows.length === 0) throw new Error('no usage found')
  }
  const busy = { accountId: BUSY_ACCOUNT, keyId: BUSY_KEY }
  const labels = [['run', 'load']] as const
  return {
    [A_YEAR]: () => figures(365, { owner: busy, interval: 'day' }),
    'the last 24 hours by hour': () => figures(1, {}),
    'the last 24 hours by key': () => figures(1, { grouping: { by: 'key' } }),
    [`the day of a run of ${RUN_MAILS} mails by label`]: () =>
      figures(2, { grouping: { by: 'label', name: 'run' } }),
    'the report of that run': async () => {
      const span = { from: new Date(now - 90 * DAY_MS), to: new Date(now) }
      const { mails } = await queries.report({ owner: busy, ...span, labels })
      if (mails !== RUN_MAILS) throw new Error(`${mails} mails in the run`)
    },
    'totals of 25 keys': async () => {
      const totals = await queries.totals(BUSY_ACCOUNT, ACCOUNT_KEYS)
      if (totals.size !== ACCOUNT_KEYS.length) throw new Error(`totals of ${totals.size} keys`)
    },
  }
}
