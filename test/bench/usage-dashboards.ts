import type { ClickHouseClient } from '@clickhouse/client'
import { expanded } from '#infra/grafana/macros.js'
import { dashboards, type Dashboard, type Panel } from '#infra/grafana/provisioned.js'
import { INTERVAL_MS } from '#libs/ports/usage/usage-store.js'
import { median, timesOf, type Figure } from './figure.js'
import { withTables } from './filled-tables.js'

const QUERY_ROUNDS = 5
const ANSWERED_MS = { atMost: 200 }
const { second: s, minute: m, hour: h, day: d } = INTERVAL_MS
const UNIT_MS: Readonly<Record<string, number>> = { s, m, h, d }
/** Points of a panel that fills the screen, from which Grafana computes its interval. */
const POINTS = 1_000

interface PanelQuery {
  title: string
  sql: string
}

/** Query times of the panels of the dashboards, over their default time range and over a month. */
export function dashboardFigures(folder: string): Promise<Figure[]> {
  return withTables(folder, async (client) => {
    const opened = await slowest(client, ({ time }) => durationOf(time.from.replace(/^now-/, '')))
    const month = await slowest(client, () => 30 * INTERVAL_MS.day)
    return [
      { ...named('the slowest panel of the dashboards', opened), target: ANSWERED_MS },
      named('the slowest panel over 30 days', month),
    ]
  })
}

interface Slowest {
  title: string
  times: number[]
  of: number
}

function named(name: string, { title, times, of }: Slowest): Figure {
  return { name: `${name}, p50`, unit: 'ms', rounds: times, note: `"${title}", of ${of}.` }
}

async function slowest(client: ClickHouseClient, spanOf: (dashboard: Dashboard) => number): Promise<Slowest> {
  const queries = dashboards().flatMap((dashboard) =>
    dashboard.panels.flatMap((panel) => queriesOf(dashboard, panel, spanOf(dashboard))),
  )
  const all: { title: string; times: number[] }[] = []
  for (const { title, sql: query } of queries) {
    const run = async () => (await client.query({ query, format: 'JSON' })).json()
    all.push({ title, times: await timesOf(QUERY_ROUNDS, run) })
  }
  const [first] = all.toSorted((one, other) => median(other.times) - median(one.times))
  if (first === undefined) throw new Error('no dashboards found')
  return { ...first, of: all.length }
}

function queriesOf({ title, templating }: Dashboard, panel: Panel, spanMs: number): PanelQuery[] {
  const to = new Date()
  const least = panel.interval === undefined ? 1_000 : durationOf(panel.interval)
  const shown = {
    ...{ from: new Date(to.getTime() - spanMs), to },
    intervalS: Math.ceil(Math.max(least, spanMs / POINTS) / 1_000),
    variables: Object.fromEntries(templating.list.map(({ name }) => [name, null])),
  }
  return panel.targets.map(({ rawSql }) => ({
    title: `${title}: ${panel.title}`,
    sql: expanded(rawSql, shown),
  }))
}

/** The milliseconds of a duration of Grafana: `30s`, `6h`. */
function durationOf(text: string): number {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  const ms = Number(count) * (UNIT_MS[unit] ?? NaN)
  if (Number.isNaN(ms)) throw new Error(`${text} is not a duration`)
  return ms
}
