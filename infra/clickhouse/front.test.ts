import { gzipSync } from 'node:zlib'
import { startClickHouse, type ClickHouseServer } from '#test/harness/clickhouse.js'
import { describeWith } from '#test/harness/tools.js'
import { firstAnswer } from '../servers/ports.js'

const MAX_BODY_BYTES = 100_000
const USER = { 'X-ClickHouse-User': 'mayfly', 'X-ClickHouse-Key': 'se:cret' }

describeWith('clickhouse')('ClickHouse over HTTP', () => {
  let server: ClickHouseServer

  beforeAll(async () => {
    const access = { user: 'mayfly', password: 'se:cret' }
    server = await startClickHouse({ access, maxBodyBytes: MAX_BODY_BYTES })
  })

  afterAll(() => server.dispose())

  async function query(body: string | Uint8Array<ArrayBuffer>, search = '', more: RequestInit = {}) {
    const response = await fetch(`${server.url}/${search}`, { method: 'POST', body, headers: USER, ...more })
    const code = response.headers.get('x-clickhouse-exception-code')
    return { status: response.status, code, text: await response.text(), headers: response.headers }
  }

  it('answers a ping without credentials', async () => {
    expect(await (await fetch(`${server.url}/ping`)).text()).toBe('Ok.\n')
  })

  const basic = (pair: string) => ({ Authorization: `Basic ${Buffer.from(pair).toString('base64')}` })
  test.each<{ headers: Record<string, string>; search?: string; status: number }>([
    { headers: USER, status: 200 },
    { headers: basic('mayfly:se:cret'), status: 200 },
    { headers: {}, search: '?user=mayfly&password=se:cret', status: 200 },
    { headers: {}, status: 403 },
    { headers: basic('mayfly:se'), status: 403 },
    { headers: basic('default:se:cret'), status: 403 },
    { headers: { ...USER, 'X-ClickHouse-Key': '' }, status: 403 },
  ])(
    'requires the credentials of its user: $headers $search is $status',
    async ({ headers, search, status }) => {
      const answer = await query('SELECT 1', search, { headers })
      expect(answer.status).toBe(status)
      if (status === 200) return
      expect(answer.code).toBe('516')
      expect(answer.text).toMatch(
        /^Code: 516\. DB::Exception: .* \(AUTHENTICATION_FAILED\) \(version [\d.]+\)\n$/,
      )
    },
  )

  it('sets the content type and the query id of an answer', async () => {
    const { status, text, headers } = await query(
      'SELECT 1 AS one',
      '?query_id=mine&default_format=JSONEachRow',
    )
    expect({ status, text }).toEqual({ status: 200, text: '{"one":1}\n' })
    expect(headers.get('x-clickhouse-query-id')).toBe('mine')
    expect(headers.get('x-clickhouse-format')).toBe('JSONEachRow')
    expect(headers.get('content-type')).toBe('application/x-ndjson; charset=UTF-8')
  })

  test.each([
    { what: 'a statement that is wrong', body: 'SELEC 1', status: 400, code: '62' },
    { what: 'no statement', body: ' ', status: 400, code: '62' },
    { what: 'a table that is missing', body: 'SELECT * FROM missing', status: 404, code: '60' },
    {
      what: 'a database that is missing',
      body: 'SELECT 1',
      search: '?database=no`pe',
      status: 404,
      code: '81',
    },
    { what: 'a setting that is missing', body: 'SELECT 1', search: '?no_such=1', status: 404, code: '115' },
    {
      what: 'a setting with a custom name',
      body: 'SELECT 1',
      search: '?a%20=1',
      status: 404,
      code: '115',
    },
    { what: 'a session', body: 'SELECT 1', search: '?session_id=a', status: 501, code: '48' },
    { what: 'a role', body: 'SELECT 1', search: '?role=a', status: 501, code: '48' },
    {
      what: 'data for a query',
      body: "INSERT INTO a SELECT * FROM input('a UInt8') FORMAT CSV\n1",
      status: 501,
      code: '48',
    },
    { what: 'too long a body', body: 'x'.repeat(MAX_BODY_BYTES + 1), status: 413, code: '307' },
  ])('refuses $what', async ({ body, search, status, code }) => {
    expect(await query(body, search)).toMatchObject({ status, code })
  })

  it('limits the uncompressed size of a body, and survives a damaged one', async () => {
    const headers = { ...USER, 'Content-Encoding': 'gzip' }
    const packed = (text: string) => new Uint8Array(gzipSync(text))
    expect(await query(packed('SELECT 1'), '', { headers })).toMatchObject({ status: 200, text: '1\n' })
    const bomb = packed('x'.repeat(50 * MAX_BODY_BYTES))
    expect(await query(bomb, '', { headers })).toMatchObject({ status: 413 })
    expect((await query('no gzip', '', { headers })).status).toBe(500)
    expect(await query('x', '', { headers: { ...USER, 'Content-Encoding': 'rot13' } })).toMatchObject({
      code: '48',
    })
  })

  it('changes nothing by GET', async () => {
    const by = (method: string) =>
      fetch(`${server.url}/?query=${encodeURIComponent('CREATE TABLE got (a UInt8) ENGINE = Memory')}`, {
        method,
        headers: USER,
      })
    const refused = await by('GET')
    expect(await refused.text()).toContain('(READONLY)')
    expect((await by('POST')).status).toBe(200)
  })

  it('streams a result before it is complete', async () => {
    const query = 'SELECT sleepEachRow(0.5) FROM numbers(20) SETTINGS max_block_size = 1'
    const began = performance.now()
    const response = await fetch(server.url, { method: 'POST', body: query, headers: USER })
    const reader = response.body?.getReader()
    await reader?.read()
    expect(performance.now() - began).toBeLessThan(8_000)
    await reader?.cancel()
  })

  it('closes the connection with an error if a result fails after its start', async () => {
    const query =
      "SELECT throwIf(number = 900000, 'too late') FROM numbers(1000000) SETTINGS max_block_size = 1000"
    const response = await fetch(server.url, { method: 'POST', body: query, headers: USER })
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow('terminated')
  })

  test.each([
    'nonsense\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'POST //[ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n',
    'GET /?query=%ZZ HTTP/1.1\r\nHost: a\r\n\r\n',
  ])('answers %j with a refusal', async (bytes) => {
    expect(await firstAnswer(server.port, bytes, 20_000)).toMatch(/^HTTP\/1\.1 4\d\d /)
  })

  it('answers requests in progress before it ends at SIGTERM', async () => {
    const slow = 'SELECT sleepEachRow(0.3) FROM numbers(4) SETTINGS max_block_size = 1'
    const response = await fetch(server.url, { method: 'POST', body: slow, headers: USER })
    const [text] = await Promise.all([response.text(), server.kill('SIGTERM')])
    expect(text).toBe('0\n0\n0\n0\n')
    await server.restart()
    expect(await query('SELECT 1')).toMatchObject({ status: 200 })
  })

  it('has every acknowledged row after SIGKILL during inserts', async () => {
    await query('CREATE DATABASE IF NOT EXISTS kept')
    await query('CREATE TABLE kept.rows (n UInt64) ENGINE = MergeTree ORDER BY n')
    const acknowledged: number[] = []
    for (let round = 0; round < 3; round += 1) {
      const writers = [0, 1, 2].map(async (writer) => {
        for (let index = 0; ; index += 1) {
          const n = round * 1_000_000 + writer * 100_000 + index
          const answer = await query(`${n}\n`, '?query=INSERT INTO kept.rows FORMAT TSV').catch(() => null)
          if (answer?.status !== 200) return
          acknowledged.push(n)
          if (writer === 0 && index === 20) await server.kill('SIGKILL')
        }
      })
      await Promise.all(writers)
      await server.restart()
      const { text } = await query('SELECT n FROM kept.rows')
      const kept = new Set(text.trim().split('\n').map(Number))
      expect(acknowledged.filter((n) => !kept.has(n))).toEqual([])
    }
    expect(acknowledged.length).toBeGreaterThan(60)
  })
})
