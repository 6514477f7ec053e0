import { execFile } from 'node:child_process'
import { createWriteStream, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import { EXPORT_TABLES } from '#libs/ports/usage/usage-store.js'
import { GeneratedUsage } from '#test/harness/generated-usage.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'
import { openUsageTables, type UsageTables } from '#test/harness/usage-tables.js'

const run = promisify(execFile)
const GUIDE = readFileSync('docs/analytics.md', 'utf8')
const RUNNER = resolve('infra/python/run-queries.py')
const MINUTE = 60_000
const SERVER_QUERIES = queriesIn('Queries on a ClickHouse server', 'sql')
const FILE_QUERIES = [
  ...queriesIn('Queries on exported files', 'sql').map(({ question, text }) => ({ question, sql: text })),
  ...queriesIn('Queries on exported files', 'python').map(({ question, text }) => ({
    question: `${question} (Python)`,
    python: text.replaceAll('run:42', 'run:0'),
  })),
]

interface FileAnswer {
  rows?: number
  columns?: string[]
  /** The columns that have a value in at least one row. */
  filled?: string[]
  error?: string
}

describe('docs/analytics.md', () => {
  let tables: UsageTables
  let accountId: AccountId
  let parameters: Record<string, string>

  beforeAll(async () => {
    tables = await openUsageTables()
    const [from, to] = [new Date(Date.now() - 60 * MINUTE), new Date()]
    for (const batch of new GeneratedUsage().generate(from, to, 200)) await tables.sink.write(batch)
    // Inboxes that received nothing.
    for (const batch of new GeneratedUsage({ refusedMails: 1 }).generate(from, to, 5)) {
      await tables.sink.write({ ...batch, logId: 'another' })
    }
    const { rows } = await tables.query('SELECT any(account_id) AS account FROM usage_day')
    const account = String(rows[0]?.account)
    if (!isId('acc', account)) throw new Error(`${account} is no account`)
    accountId = account
    parameters = {
      account,
      label: 'run:0',
      log: 'generated',
      // Hourly figures have the time of the start of the hour.
      from: secondsOf(new Date(from.getTime() - 60 * MINUTE)),
      to: secondsOf(new Date(to.getTime() + MINUTE)),
    }
  })
  afterAll(() => tables.close())

  it('has at least ten queries of each kind, each with its question', () => {
    const blocks = [...GUIDE.matchAll(/^```(?:sql|python)$/gm)]
    expect(SERVER_QUERIES.length + FILE_QUERIES.length).toBe(blocks.length)
    for (const queries of [SERVER_QUERIES, FILE_QUERIES]) {
      expect(queries.length).toBeGreaterThanOrEqual(10)
      for (const { question } of queries) expect(question).toMatch(/\?/)
    }
  })

  it.each(SERVER_QUERIES)('on a ClickHouse server: $question', async ({ text }) => {
    const names = [...text.matchAll(/\{(\w+):/g)].map(([, name = '']) => name)
    const given = Object.fromEntries(names.map((name) => [name, parameters[name]]))
    const { columns, rows } = await tables.query(text, given)
    expect(rows.length).toBeGreaterThan(0)
    for (const { name } of columns) {
      expect([name, rows.some((row) => row[name] !== null && row[name] !== '')]).toEqual([name, true])
    }
  })

  describe('on exported files', () => {
    let folder: string

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'mayfly-exported-'))
      const { signal } = new AbortController()
      const span = { from: new Date(Date.now() - 40 * 86_400_000), to: new Date(Date.now() + MINUTE) }
      for (const table of EXPORT_TABLES) {
        for (const format of ['parquet', 'csv'] as const) {
          const query = { accountId, ...span, table, format, keyNames: new Map() }
          const file = await tables.queries.export(query, signal)
          await pipeline(file, createWriteStream(join(folder, `${table}.${format}`)))
        }
      }
    })
    afterAll(() => rm(folder, { recursive: true }))

    const columnsOf = async (table: string) => {
      const [head = ''] = (await readFile(join(folder, `${table}.csv`), 'utf8')).split('\n')
      return head.replaceAll('"', '').split(',')
    }

    it('have the columns of their tables, under the names that the guide says', async () => {
      const renamed = new Map(
        [...GUIDE.matchAll(/^\| `(\w+)` +\| `(\w+)` +\|[^|]*\|$/gm)].map(([, name = '', other = '']) => [
          name,
          other,
        ]),
      )
      expect(renamed.size).toBe(5)
      for (const { name, columns } of documentedTables().filter(({ name }) => name !== 'sink_positions')) {
        const expected = columns.flatMap((column) => {
          const isDigest = /_(minute|hour|day)$/.test(name) && column.endsWith('_ms')
          if (isDigest) return ['p50', 'p95', 'p99'].map((quantile) => `${column}_${quantile}`)
          if (column === 'key_id') return ['key_id', 'key_name']
          return [renamed.get(column) ?? column]
        })
        expect([name, (await columnsOf(name)).toSorted()]).toEqual([name, expected.toSorted()])
      }
    })

    it('have no column name that SQLite or BigQuery reserves', async () => {
      const database = new DatabaseSync(':memory:')
      for (const table of EXPORT_TABLES) {
        const columns = await columnsOf(table)
        database.exec(`CREATE TABLE ${table} (${columns.join(', ')})`)
        expect(columns).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(at|time|method)$/)]))
      }
      database.close()
    })

    describeWith('python-packages')('in DuckDB and pandas', () => {
      let answers: Record<string, FileAnswer>

      beforeAll(async () => {
        const names = await Promise.all(
          EXPORT_TABLES.map(async (table) => ({
            question: table,
            sql: `SELECT ${(await columnsOf(table)).join(', ')} FROM '${table}.parquet'`,
          })),
        )
        const labels = {
          question: 'labels in CSV',
          sql: `SELECT count(*) FILTER (list_contains(labels::JSON::VARCHAR[], $label)) AS requests FROM 'requests.csv'`,
        }
        const running = run(await pythonWithPackages(), [RUNNER], { cwd: folder, timeout: 100_000 })
        running.child.stdin?.end(JSON.stringify([...FILE_QUERIES, ...names, labels]))
        answers = JSON.parse((await running).stdout) as typeof answers
      })

      it.each(FILE_QUERIES)('$question', ({ question }) => {
        const { rows = 0, columns, filled, error } = answers[question] ?? {}
        expect(error).toBeUndefined()
        expect(rows).toBeGreaterThan(0)
        expect(filled).toEqual(columns)
      })

      it('each column can be used under its name without quotes', async () => {
        for (const table of EXPORT_TABLES) expect(answers[table]?.columns).toEqual(await columnsOf(table))
      })

      it('labels in CSV are a list', () => {
        expect(answers['labels in CSV']).toMatchObject({ rows: 1, filled: ['requests'] })
      })
    })
  })

  it('names every table, its columns in their order, and how long rows are kept', async () => {
    const { rows } = await tables.query(
      `SELECT t.name AS name, extract(t.engine_full, 'toIntervalDay\\\\((\\\\d+)\\\\)') AS days
        FROM system.tables AS t
        WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND t.name != 'schema_migrations'
        ORDER BY name`,
    )
    const { rows: columns } = await tables.query(
      'SELECT table, name FROM system.columns WHERE database = currentDatabase() ORDER BY table, position',
    )
    const there = rows.map(({ name, days }) => ({
      name,
      columns: columns.filter(({ table }) => table === name).map((column) => column.name),
      kept: days === '' ? 'permanently' : `${String(days)} days`,
    }))
    expect(documentedTables().toSorted((one, other) => (one.name < other.name ? -1 : 1))).toEqual(there)
  })
})

function queriesIn(heading: string, language: string): { question: string; text: string }[] {
  const [, section = ''] = GUIDE.split(`## ${heading}\n`)
  const [own = ''] = section.split(/^## /m)
  const blocks = own.matchAll(new RegExp(`^\`\`\`${language}\\n(?:--|#) (.*?)\\n(.*?)^\`\`\`$`, 'gms'))
  return [...blocks].map(([, question = '', text = '']) => ({ question, text }))
}

function documentedTables(): { name: string; columns: string[]; kept: string }[] {
  return [...GUIDE.matchAll(/^\| `(\w+)` +\|[^|]*\|([^|]*)\| ([^|]*?) *\|$/gm)].map(
    ([, name = '', names = '', kept = '']) => ({
      name,
      columns: [...names.matchAll(/`(\w+)`/g)].map(([, column = '']) => column),
      kept,
    }),
  )
}

/** Formats a time as a ClickHouse DateTime. */
function secondsOf(at: Date): string {
  return at.toISOString().slice(0, 19).replace('T', ' ')
}
