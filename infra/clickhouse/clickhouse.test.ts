import { Readable } from 'node:stream'
import {
  createClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseClient,
  type QueryParams,
} from '@clickhouse/client'
import * as fc from 'fast-check'
import { startClickHouse, type ClickHouseServer } from '#test/harness/clickhouse.js'
import { describeWith } from '#test/harness/tools.js'

/* ClickHouse's own client against the HTTP server, because Mayfly uses that client. */

/** Some tests expect refusals, which the client would log. */
const SILENT = { level: ClickHouseLogLevel.OFF }

describeWith('clickhouse')('ClickHouse over HTTP, with its own client', () => {
  let server: ClickHouseServer
  let client: ClickHouseClient

  beforeAll(async () => {
    server = await startClickHouse()
    client = createClient({ url: server.url, log: SILENT })
    await client.command({ query: 'CREATE DATABASE suite' })
    await client.close()
    client = createClient({ url: server.url, database: 'suite', log: SILENT })
  })

  afterAll(async () => {
    await client.close()
    await server.dispose()
  })

  async function rows(query: string, more: Partial<QueryParams> = {}) {
    const result = await client.query({ ...more, query, format: 'JSONEachRow' })
    return result.json<Record<string, unknown>>()
  }

  async function table(name: string, columns: string): Promise<void> {
    await client.command({ query: `CREATE TABLE ${name} (${columns}) ENGINE = MergeTree ORDER BY tuple()` })
  }

  it('answers a ping, by /ping and by a query', async () => {
    expect(await client.ping()).toEqual({ success: true })
    expect(await client.ping({ select: true })).toEqual({ success: true })
  })

  it('answers queries in row formats and document formats', async () => {
    expect(await rows('SELECT number FROM numbers(2)')).toEqual([{ number: 0 }, { number: 1 }])
    const document = await client.query({ query: 'SELECT number FROM numbers(300000)', format: 'JSON' })
    const { rows: count, data, meta } = await document.json()
    expect({ count, read: data.length, meta }).toEqual({
      count: 300_000,
      read: 300_000,
      meta: [{ name: 'number', type: 'UInt64' }],
    })
  })

  it('streams rows without gap or repeat', async () => {
    const result = await client.query({
      query: 'SELECT number AS n FROM numbers(300000) ORDER BY n',
      format: 'JSONEachRow',
    })
    let next = 0
    for await (const batch of result.stream<{ n: number }>()) {
      for (const row of batch) expect(row.json().n).toBe(next++)
    }
    expect(next).toBe(300_000)
  })

  test.each([
    'CSV',
    'CSVWithNames',
    'TabSeparated',
    'TabSeparatedWithNamesAndTypes',
    'JSONCompactEachRow',
    'JSONCompactEachRowWithNames',
    'Native',
    'Parquet',
  ] as const)('answers in %s what that format reads again', async (format) => {
    const query = 'SELECT number AS n, toString(number) AS text FROM numbers(200000) ORDER BY n'
    const { stream } = await client.exec({ query: `${query} FORMAT ${format}` })
    const bytes = await bytesOf(stream)
    if (format === 'Parquet')
      expect(String(bytes.subarray(0, 4)) + String(bytes.subarray(-4))).toBe('PAR1PAR1')
    const name = `again_${format}`
    await table(name, 'n UInt64, text String')
    const insert = `INSERT INTO ${name} FORMAT ${format}`
    await bytesOf((await client.exec({ query: insert, values: Readable.from([bytes]) })).stream)
    expect(await rows(`SELECT count() AS c, sum(n) AS s, uniqExact(text) AS u FROM ${name}`)).toEqual([
      { c: 200_000, s: 19_999_900_000, u: 200_000 },
    ])
  })

  it('inserts rows and streams of rows, and reports how many were written', async () => {
    await table('inserted', 'id UInt32, name String')
    const values = [
      { id: 1, name: 'one' },
      { id: 2, name: 'zwölf\n\t"\'\\' },
    ]
    const { summary } = await client.insert({ table: 'inserted', values, format: 'JSONEachRow' })
    expect(summary).toMatchObject({ written_rows: '2' })
    const stream = Readable.from(
      (function* () {
        for (let id = 3; id <= 20_000; id += 1) yield { id, name: `row ${id}` }
      })(),
      { objectMode: true },
    )
    await client.insert({ table: 'inserted', values: stream, format: 'JSONEachRow' })
    expect(await rows('SELECT * FROM inserted WHERE id <= 2 ORDER BY id')).toEqual(values)
    expect(await rows('SELECT count() AS c, max(id) AS m FROM inserted')).toEqual([{ c: 20_000, m: 20_000 }])
  })

  it('accepts an insert without rows', async () => {
    await table('empty', 'id UInt32')
    const none = Readable.from([], { objectMode: true })
    await client.insert({ table: 'empty', values: none, format: 'JSONEachRow' })
    expect(await rows('SELECT count() AS c FROM empty')).toEqual([{ c: 0 }])
  })

  it('inserts any binary data unchanged', async () => {
    await table('bytes', 'b FixedString(4)')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 4, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
        async (values) => {
          const data = Buffer.concat(values.map((value) => Buffer.from(value)))
          const insert = 'INSERT INTO bytes FORMAT RowBinary'
          await bytesOf((await client.exec({ query: insert, values: Readable.from([data]) })).stream)
          const [row] = await rows('SELECT groupArray(hex(b)) AS all FROM bytes')
          await client.command({ query: 'TRUNCATE TABLE bytes' })
          const sent = values.map((value) => Buffer.from(value).toString('hex').toUpperCase())
          expect(row).toEqual({ all: sent })
        },
      ),
      { numRuns: 30, examples: [[[new Uint8Array([10, 10, 9, 0])]], [[new Uint8Array([32, 10, 59, 39])]]] },
    )
  })

  it('binds parameters as values with any characters', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary', maxLength: 40 }),
        fc.array(fc.string()),
        async (text, list) => {
          const query = 'SELECT {text:String} AS text, {list:Array(String)} AS list'
          expect(await rows(query, { query_params: { text, list } })).toEqual([{ text, list }])
        },
      ),
      {
        numRuns: 60,
        examples: [
          ["'; DROP DATABASE suite; --", ["'", '\\', "\\'", '`']],
          ["\\' {list:Array(String)} \n\t\r\0", ['{text:String}']],
        ],
      },
    )
  })

  it('binds parameters of other types, and longer ones than fit in a URL', async () => {
    const query = 'SELECT {n:Nullable(UInt8)} AS n, {at:DateTime64(3)} AS at, length({long:String}) AS long'
    const at = new Date('2026-11-22T01:02:03.456Z')
    const query_params = { n: null, at, long: 'x'.repeat(100_000) }
    expect(await rows(query, { query_params })).toEqual([
      { n: null, at: '2026-11-22 01:02:03.456', long: 100_000 },
    ])
    await expect(rows('SELECT {n:UInt8}', { query_params: { n: '1; SELECT 2' } })).rejects.toMatchObject({
      code: '457',
      type: 'BAD_QUERY_PARAMETER',
    })
  })

  it('applies a setting, a parameter and a database to one request only', async () => {
    const query =
      "SELECT getSetting('max_block_size') AS size, currentDatabase() AS database, sum(sleepEachRow(0.02)) AS zero FROM numbers(10)"
    const before = (await rows(query))[0]
    const sizes = [1_001, 1_002, 1_003, null, null]
    const concurrent = await Promise.all(
      sizes.map((size) =>
        rows(query, { clickhouse_settings: size === null ? {} : { max_block_size: String(size) } }),
      ),
    )
    expect(concurrent.flat()).toEqual(
      sizes.map((size) => (size === null ? before : { size, database: 'suite', zero: 0 })),
    )
    expect(await rows(query)).toEqual([before])
    await expect(rows('SELECT {text:String}')).rejects.toMatchObject({ type: 'UNKNOWN_QUERY_PARAMETER' })
    await client.command({ query: 'SET max_block_size = 1004' })
    expect(await rows(query)).toEqual([before])
  })

  it('binds the parameters of concurrent requests separately', async () => {
    const texts = Array.from({ length: 40 }, (_, index) => `value ${index}`)
    const answers = await Promise.all(
      texts.map((text) => rows('SELECT {text:String} AS text', { query_params: { text } })),
    )
    expect(answers.flat()).toEqual(texts.map((text) => ({ text })))
  })

  test.each([
    { query: 'SELECT 1 +', code: '62', type: 'SYNTAX_ERROR' },
    { query: 'SELECT 1; SELECT 2', code: '62', type: 'SYNTAX_ERROR' },
    { query: 'SELECT * FROM missing', code: '60', type: 'UNKNOWN_TABLE' },
    { query: "SELECT throwIf(1, 'boo')", code: '395', type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO' },
    { query: 'INSERT INTO missing VALUES (1)', code: '60', type: 'UNKNOWN_TABLE' },
  ])('refuses $query with $type', async ({ query, code, type }) => {
    const refusal = client.command({ query })
    await expect(refusal).rejects.toBeInstanceOf(ClickHouseError)
    await expect(refusal).rejects.toMatchObject({ code, type })
  })

  it('refuses unknown settings and invalid data', async () => {
    await expect(rows('SELECT 1', { clickhouse_settings: { no_such: 1 } })).rejects.toMatchObject({
      code: '115',
    })
    await table('narrow', 'id UInt32')
    const values = [{ id: 'many' }]
    const insert = client.insert({ table: 'narrow', values, format: 'JSONEachRow' })
    await expect(insert).rejects.toThrow('Cannot parse input')
    expect(await rows('SELECT count() AS c FROM narrow')).toEqual([{ c: 0 }])
  })

  it('reports a failure in the middle of a result', async () => {
    const query = "SELECT throwIf(number = 900000, 'too late') AS n FROM numbers(1000000)"
    const result = await client.query({
      query,
      format: 'JSONEachRow',
      clickhouse_settings: { max_block_size: '1000', max_threads: 1 },
    })
    await expect(result.json()).rejects.toThrow(/too late/)
  })

  it('compresses answers and reads compressed bodies', async () => {
    const packing = createClient({
      url: server.url,
      database: 'suite',
      compression: { request: true, response: true },
    })
    try {
      await table('packed', 'id UInt32')
      const values = Array.from({ length: 5_000 }, (_, id) => ({ id }))
      await packing.insert({ table: 'packed', values, format: 'JSONEachRow' })
      const result = await packing.query({ query: 'SELECT * FROM packed ORDER BY id', format: 'JSONEachRow' })
      expect(result.response_headers['content-encoding']).toBe('gzip')
      expect(await result.json()).toEqual(values)
    } finally {
      await packing.close()
    }
  })

  it('continues after aborted requests', async () => {
    const result = await client.query({
      query: 'SELECT number FROM numbers(1000000000)',
      format: 'JSONEachRow',
    })
    for await (const batch of result.stream()) if (batch.length > 0) break
    result.close()
    const givenUp = new AbortController()
    const running = rows('SELECT sleepEachRow(0.1) FROM numbers(10)', { abort_signal: givenUp.signal })
    givenUp.abort()
    await expect(running).rejects.toThrow(/abort/)
    expect(await rows('SELECT 1 AS one')).toEqual([{ one: 1 }])
  })
})

async function bytesOf(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of stream as AsyncIterable<Buffer>) pieces.push(piece)
  return Buffer.concat(pieces)
}
