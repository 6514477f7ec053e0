import { GeneratedUsage } from '#test/harness/generated-usage.js'
import { openUsageTables, type Answer, type UsageTables } from '#test/harness/usage-tables.js'
import { expanded, type Shown } from './macros.js'
import { dashboards, dataSources, type Dashboard, type Panel } from './provisioned.js'

/*
 * Needs no Grafana: the queries of the panels run on chDB, on tables that Mayfly's sink has filled, and the results are
 * compared with what each panel can show.
 */

const HOUR = 3_600_000
/** Grafana's ClickHouse data source uses texts as labels of a series, and draws numbers. */
const TEXT = /^(Nullable\()?(LowCardinality\()?(Nullable\()?String\b/
const NUMBER = /^(Nullable\()?(U?Int(8|16|32|64)|Float(32|64))\b/
const TIME = /^DateTime/

const ALL = dashboards()
const PANELS = ALL.flatMap((dashboard) =>
  dashboard.panels.map((panel) => [`${dashboard.title}: ${panel.title}`, dashboard, panel] as const),
)
const CHOOSING = PANELS.filter(([, , { targets }]) =>
  targets.some(({ rawSql }) => rawSql.includes('$__conditionalAll')),
)
const VARIABLES = ALL.flatMap(({ title, templating }) =>
  templating.list.map((variable) => [`${title}: ${variable.name}`, variable] as const),
)

describe('the dashboards', () => {
  let tables: UsageTables
  let shown: Omit<Shown, 'variables'>

  beforeAll(async () => {
    tables = await openUsageTables()
    const now = new Date()
    shown = { from: new Date(now.getTime() - HOUR), to: now, intervalS: 60 }
    for (const batch of new GeneratedUsage().generate(shown.from, now, 400)) await tables.sink.write(batch)
  })
  afterAll(() => tables.close())

  const askAs = (sql: string, variables: Shown['variables']): Promise<Answer> =>
    tables.query(expanded(sql, { ...shown, variables }))

  const answerOf = async (panel: Panel, variables: Shown['variables']): Promise<Answer> => {
    const answers = await Promise.all(panel.targets.map(({ rawSql }) => askAs(rawSql, variables)))
    const [first] = answers
    if (first === undefined || answers.length > 1) throw new Error(`${panel.title} must have one query`)
    return first
  }

  it.each(PANELS)('have data in %s', async (_name, dashboard, panel) => {
    const { columns, rows } = await answerOf(panel, everything(dashboard))
    expect(rows.length).toBeGreaterThan(panel.type === 'timeseries' ? 10 : 0)
    for (const { name } of columns) {
      expect([name, rows.some((row) => row[name] !== null && row[name] !== '')]).toEqual([name, true])
    }
  })

  it.each(PANELS)('have in %s the columns that the panel requires', async (_name, dashboard, panel) => {
    const { columns } = await answerOf(panel, everything(dashboard))
    const names = columns.map(({ name }) => name)
    const { fieldConfig, options } = panel
    const named = [
      ...fieldConfig.overrides.map(({ matcher }) => matcher.options),
      ...(options.sortBy ?? []).map(({ displayName }) => displayName),
    ]
    expect(names).toEqual(expect.arrayContaining(named))
    for (const { name, type } of columns) expect([name, type]).toEqual([name, kindOf(type)])
    if (panel.type !== 'timeseries') return
    // A time, what tells the series apart, and numbers (https://grafana.com/docs/plugins/grafana-clickhouse-datasource).
    expect(columns[0]).toMatchObject({ name: 'time', type: expect.stringMatching(TIME) as unknown })
    expect(columns.some(({ type }) => NUMBER.test(type))).toBe(true)
  })

  it.each(CHOOSING)('filter %s by the selected values', async (_name, dashboard, panel) => {
    for (const { name } of dashboard.templating.list) {
      if (!panel.targets.some(({ rawSql }) => rawSql.includes(`$${name})`))) continue
      const nobody = { ...everything(dashboard), [name]: ["nobody's"] }
      const { columns, rows } = await answerOf(panel, nobody)
      const numbers = columns.filter(({ type }) => NUMBER.test(type)).map((column) => column.name)
      for (const row of rows) for (const number of numbers) expect([number, row[number]]).toEqual([number, 0])
    }
  })

  it.each(VARIABLES)('have values for %s, with which all panels have data', async (_name, variable) => {
    const all = { account: null, environment: null, key: null }
    const { columns, rows } = await askAs(variable.query, all)
    expect(columns).toHaveLength(1)
    const values = rows.map((row) => String(Object.values(row)[0]))
    expect(values.length).toBeGreaterThan(1)
    for (const dashboard of ALL.filter(({ templating }) => templating.list.includes(variable))) {
      for (const panel of dashboard.panels) {
        const { rows: shownRows } = await answerOf(panel, { ...all, [variable.name]: values.slice(0, 1) })
        expect([panel.title, shownRows.length > 0]).toEqual([panel.title, true])
      }
    }
  })

  it('list the keys of the selected accounts and environments', async () => {
    const query = VARIABLES.find(([, { name }]) => name === 'key')?.[1].query ?? ''
    const { rows: all } = await askAs(query, { account: null, environment: null })
    const { rows: accounts } = await tables.query('SELECT DISTINCT account_id FROM usage_day')
    const account = accounts.map((row) => String(row.account_id)).slice(0, 1)
    const { rows: some } = await askAs(query, { account, environment: ['staging'] })
    expect(some.length).toBeGreaterThan(0)
    expect(some.length).toBeLessThan(all.length / 2)
  })

  it('use the provisioned data source', () => {
    const [source] = dataSources()
    const { type, uid } = source ?? { type: '', uid: '' }
    expect(uid).toBe('mayfly-clickhouse')
    for (const [, , { datasource, targets }] of PANELS) {
      expect([datasource, ...targets.map((target) => target.datasource)]).toEqual(
        [datasource, ...targets].map(() => ({ type, uid })),
      )
    }
    for (const [, { datasource }] of VARIABLES) expect(datasource).toEqual({ type, uid })
  })

  it('have unique ids, and panels that do not overlap', () => {
    expect(new Set(ALL.map(({ uid }) => uid)).size).toBe(ALL.length)
    for (const { panels } of ALL) {
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
      )
      expect(new Set(cells).size).toBe(cells.length)
      expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24)
    }
  })

  it('request the format that their panels need', () => {
    for (const [, , { type, targets }] of PANELS) {
      const form =
        type === 'timeseries' ? { queryType: 'timeseries', format: 0 } : { queryType: 'table', format: 1 }
      expect(targets).toEqual(targets.map((target) => ({ ...target, ...form, editorType: 'sql' })))
    }
  })
})

function everything({ templating }: Dashboard): Shown['variables'] {
  return Object.fromEntries(templating.list.map(({ name }) => [name, null]))
}

/** The type itself if no panel can show it. */
function kindOf(type: string): string {
  return [TEXT, NUMBER, TIME].some((kind) => kind.test(type)) ? type : 'a text, a number or a time'
}
