import { globSync, readFileSync } from 'node:fs'
import { GeneratedUsage, type GeneratedUsageOptions } from '#test/harness/generated-usage.js'
import { openUsageTables, type UsageTables } from '#test/harness/usage-tables.js'
import { expanded } from './macros.js'
import { alertRules, dataSources, type AlertRule } from './provisioned.js'

const RULES = alertRules().map((rule) => [rule.title, rule] as const)
const MINUTE = 60_000

describe('the alert rules', () => {
  let tables: UsageTables

  beforeEach(async () => (tables = await openUsageTables()))
  afterEach(() => tables.close())

  /** Evaluates a rule on the stored usage: one number for each alert, and whether it exceeds the threshold. */
  const check = async (rule: AlertRule): Promise<{ values: number[]; isFiring: boolean }> => {
    const { sql, fromS, above } = partsOf(rule)
    const now = Date.now()
    const shown = { from: new Date(now - fromS * 1_000), to: new Date(now), intervalS: 1, variables: {} }
    const { columns, rows } = await tables.query(expanded(sql, shown))
    // Otherwise Grafana would not know which number to compare.
    const numbers = columns.filter(({ type }) => /^(U?Int|Float)/.test(type)).map(({ name }) => name)
    expect([rule.title, numbers.length, columns.length <= 2]).toEqual([rule.title, 1, true])
    const values = rows.map((row) => Number(row[numbers[0] ?? '']))
    return { values, isFiring: values.some((value) => value > above) }
  }

  const generate = async (
    options: Partial<GeneratedUsageOptions>,
    inboxes: number,
    endedMsAgo = 0,
  ): Promise<void> => {
    const to = new Date(Date.now() - endedMsAgo)
    const batches = new GeneratedUsage(options).generate(new Date(to.getTime() - 10 * MINUTE), to, inboxes)
    for (const batch of batches) await tables.sink.write(batch)
  }

  it('do not fire, but each has a number, in normal operation', async () => {
    await generate({ refusedMails: 0.03 }, 400)
    for (const [, rule] of RULES) {
      const { values, isFiring } = await check(rule)
      expect([rule.title, values.length > 0, isFiring]).toEqual([rule.title, true, false])
    }
  })

  it('do not fire before the first events', async () => {
    for (const [, rule] of RULES) expect(await check(rule)).toEqual({ values: [], isFiring: false })
  })

  it('do not fire without recent events if earlier ones were written at once', async () => {
    await generate({}, 100, 2 * MINUTE)
    await tables.run(
      `ALTER TABLE sink_positions UPDATE written_at = written_at - INTERVAL 2 MINUTE WHERE 1 SETTINGS mutations_sync = 1`,
    )
    const { values, isFiring } = await check(ruleOf('mayfly-usage-late'))
    expect(isFiring).toBe(false)
    expect(values).toHaveLength(3)
  })

  const FAILURES: [uid: string, what: Partial<GeneratedUsageOptions>][] = [
    ['mayfly-requests-refused', { refusedRequests: 0.1 }],
    ['mayfly-requests-failing', { failedRequests: 0.05 }],
    ['mayfly-mails-refused', { refusedMails: 0.1 }],
    ['mayfly-mails-put-off', { refusedMails: 0.1 }],
    ['mayfly-webhooks-failing', { failedAttempts: 0.3 }],
  ]

  it.each(FAILURES)('fire on failures: %s', async (uid, what) => {
    await generate(what, 400)
    expect((await check(ruleOf(uid))).isFiring).toBe(true)
  })

  it('do not fire on a few requests and mails', async () => {
    await generate({ refusedRequests: 0.5, failedRequests: 0.5, refusedMails: 0.5, failedAttempts: 0.9 }, 4)
    for (const [uid] of FAILURES) expect((await check(ruleOf(uid))).isFiring).toBe(false)
  })

  it('fire on events that are written late', async () => {
    await generate({}, 100, 2 * MINUTE)
    const { values, isFiring } = await check(ruleOf('mayfly-usage-late'))
    expect(isFiring).toBe(true)
    expect(values).toHaveLength(3)
  })

  it('fire on a batch that was written only in part', async () => {
    const to = new Date()
    for (const batch of new GeneratedUsage().generate(new Date(to.getTime() - MINUTE), to, 20)) {
      // The rows were written, but not their end offset.
      await tables.sink.write({ ...batch, ranges: batch.ranges.map((range) => ({ ...range, end: 1 })) })
    }
    expect((await check(ruleOf('mayfly-usage-in-part'))).isFiring).toBe(true)
  })

  it.each(RULES)('query the provisioned data source, and compare the result: %s', (_title, rule) => {
    const [source] = dataSources()
    const [query, reduction, threshold] = rule.data
    expect([query?.datasourceUid, reduction?.datasourceUid, threshold?.datasourceUid]).toEqual([
      source?.uid,
      '__expr__',
      '__expr__',
    ])
    expect(reduction?.model).toMatchObject({ type: 'reduce', expression: query?.refId, reducer: 'last' })
    expect(threshold?.model).toMatchObject({ type: 'threshold', expression: reduction?.refId })
    expect(rule.condition).toBe(threshold?.refId)
  })

  it('have unique uids', () => {
    expect(new Set(RULES.map(([, { uid }]) => uid)).size).toBe(RULES.length)
  })
})

describe("Prometheus's rules", () => {
  it('use existing metrics', () => {
    const usedMetrics = new Set(readFileSync('infra/prometheus/rules.yml', 'utf8').match(/\bmayfly_\w+/g))
    const sources = globSync(['apps/**/*.ts', 'libs/**/*.ts']).filter((path) => !path.endsWith('.test.ts'))
    const text = sources.map((path) => readFileSync(path, 'utf8')).join('\n')
    const existingMetrics = new Set([...text.matchAll(/'(mayfly_\w+)'/g)].map(([, name]) => name))
    expect(usedMetrics.size).toBeGreaterThan(3)
    expect(
      [...usedMetrics].filter((name) => !existingMetrics.has(name.replace(/_(bucket|count|sum)$/, ''))),
    ).toEqual([])
  })
})

function ruleOf(uid: string): AlertRule {
  const found = RULES.find(([, rule]) => rule.uid === uid)
  if (found === undefined) throw new Error(`unknown rule ${uid}`)
  return found[1]
}

function partsOf({ title, data }: AlertRule): { sql: string; fromS: number; above: number } {
  const [query] = data
  const evaluator = data.at(-1)?.model.conditions?.[0]?.evaluator
  const [above] = evaluator?.params ?? []
  const sql = query?.model.rawSql
  const fromS = query?.relativeTimeRange?.from
  if (sql === undefined || fromS === undefined || above === undefined || evaluator?.type !== 'gt') {
    throw new Error(`${title} has no threshold`)
  }
  return { sql, fromS, above }
}
