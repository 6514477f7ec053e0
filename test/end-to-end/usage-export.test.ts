import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { query } from 'chdb'
import { EXPORT_TABLES, type ExportTable } from '#libs/ports/usage/usage-store.js'
import {
  withKey,
  issueKey,
  openAccount,
  type NewAccountJson,
  type NewKeyJson,
} from '#test/harness/accounts.js'
import { call, createInbox, inboxWith, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { until } from '#test/harness/until.js'
import { untilCounted } from '#test/harness/usage.js'

type Row = Record<string, unknown>

describe('usage as a file', () => {
  let mayfly: Mayfly
  let folder: string
  let account: NewAccountJson
  let admin: Target
  let worker: NewKeyJson
  let inboxId: string
  let webhookId: string
  /** Another account that made the same requests. */
  let stranger: Target
  let theirs: string[]
  /** Just after the last of these requests, so that the exports below do not contain themselves. */
  let before: { to?: string } = {}

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true })
    folder = await mkdtemp(join(tmpdir(), 'mayfly-export-'))
    const accounts = [await openAccount(mayfly), await openAccount(mayfly)]
    const made = await Promise.all(accounts.map(use))
    const [ours, others] = made
    if (ours === undefined || others === undefined) throw new Error('there are two accounts')
    ;({ account, admin, worker, inboxId, webhookId } = ours)
    stranger = others.admin
    theirs = [others.account.id, others.worker.id, others.inboxId, others.webhookId]
    const served: string[] = []
    for (const target of [admin, stranger]) {
      const counted = (table: ExportTable, isAll: (rows: Row[]) => boolean) =>
        untilCounted(() => rowsOf(table, target), isAll)
      // The requests of a key are counted in order, and these are the last ones.
      for (const route of ['DELETE /v1/inboxes/{id}', 'GET /v1/account', 'POST /v1/webhooks/{id}/test']) {
        const isRoute = (row: Row) => `${String(row.http_method)} ${String(row.route)}` === route
        const rows = await counted('requests', (found) => found.some(isRoute))
        served.push(...rows.filter(isRoute).map(({ occurred_at: at }) => String(at)))
      }
      await counted('inbox_events', (rows) => rows.length >= 4)
      await counted('mail_events', (rows) => rows.length >= 4)
      await counted('webhook_events', (rows) => rows.length >= 2)
    }
    const last = Math.max(...served.map((at) => Date.parse(at)))
    before = { to: new Date(last + 1).toISOString() }
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  async function use(opened: NewAccountJson) {
    const owner = withKey(mayfly, opened.key)
    const key = await issueKey(owner)
    const target = withKey(mayfly, key)
    const { id } = await inboxWith(target, mail('one'))
    const ended = await createInbox(target, { labels: { run: '42', story: 'a "quoted", one' } })
    await call(target, 'DELETE', `/v1/inboxes/${ended.id}`)
    await expect(send(mayfly, ended.address, mail('late'))).rejects.toThrow(/550/)
    const hooked = withKey(mayfly, await issueKey(owner, { scopes: ['inboxes', 'admin'] }))
    // No request is sent to this URL: its test delivery is refused, which is an event too.
    const webhook = await registerWebhook(hooked, '/v1/webhooks', { url: 'http://127.0.0.1:9/' })
    await call(hooked, 'POST', `/v1/webhooks/${webhook.id}/test`)
    await call(owner, 'GET', '/v1/account')
    return { account: opened, admin: owner, worker: key, inboxId: id, webhookId: webhook.id }
  }

  async function fileOf(target: Target, parameters: Record<string, string>) {
    const response = await fetch(
      `${target.url}/v1/usage/export?${new URLSearchParams(parameters).toString()}`,
      {
        headers: { authorization: `Bearer ${target.apiKey}` },
      },
    )
    expect(response.status).toBe(200)
    return { headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  }

  async function rowsOf(table: ExportTable, target: Target): Promise<Row[]> {
    const { bytes } = await fileOf(target, { table, ...before })
    const lines = bytes.toString().split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Row)
  }

  it.each(EXPORT_TABLES)('has the %s of the account only', async (table) => {
    const [ours, others] = [await rowsOf(table, admin), await rowsOf(table, stranger)]
    expect(ours.length).toBeGreaterThan(0)
    expect(others.length).toBeGreaterThan(0)
    for (const row of ours) expect(row.account_id).toBe(account.id)
    for (const id of theirs) expect(JSON.stringify(ours)).not.toContain(id)
    for (const id of [account.id, worker.id, webhookId]) expect(JSON.stringify(others)).not.toContain(id)
  })

  it('has a row for each event, with its labels and its time', async () => {
    const ofWorker = (rows: Row[]) => rows.filter((row) => row.key_id === worker.id)
    const requests = ofWorker(await rowsOf('requests', admin))
    expect(requests.filter((row) => row.http_method === 'POST')).toHaveLength(2)
    const labelled = requests.filter(({ labels }) => JSON.stringify(labels).includes('run:42'))
    expect(labelled).toMatchObject([
      { http_method: 'POST', status: 201, labels: ['run:42', 'story:a "quoted", one'], refused: false },
      { http_method: 'DELETE', route: '/v1/inboxes/{id}', status: 200 },
    ])
    const inboxEvents = (await rowsOf('inbox_events', admin)).filter((row) => row.inbox_id === inboxId)
    expect(inboxEvents).toMatchObject([
      { type: 'inbox.created', bytes: 0 },
      {
        ...{ type: 'message.received', bytes: mail('one').length },
        ...{ key_id: worker.id, key_name: worker.name },
      },
    ])
    const mailEvents = ofWorker(await rowsOf('mail_events', admin))
    expect(mailEvents.map(({ type }) => type).toSorted()).toEqual(['accepted', 'read', 'refused', 'shown'])
    expect(mailEvents.find(({ type }) => type === 'refused')).toMatchObject({
      code: 550,
      labels: ['run:42', 'story:a "quoted", one'],
    })
    const webhookEvents = await rowsOf('webhook_events', admin)
    expect(webhookEvents[0]).toMatchObject({ type: 'requested', webhook_id: webhookId })
  })

  it.each(EXPORT_TABLES)('has the same rows of %s in every format', async (table) => {
    const [ndjson, csv, parquet] = [
      await fileOf(admin, { table, ...before, format: 'ndjson' }),
      await fileOf(admin, { table, ...before, format: 'csv' }),
      await fileOf(admin, { table, ...before, format: 'parquet' }),
    ]
    const shown = [ndjson, csv, parquet].map(({ headers }) => [
      headers.get('content-type'),
      headers.get('content-disposition'),
    ])
    expect(shown).toEqual([
      ['application/x-ndjson', `attachment; filename=mayfly-${table}.ndjson`],
      ['text/csv; charset=utf-8', `attachment; filename=mayfly-${table}.csv`],
      ['application/vnd.apache.parquet', `attachment; filename=mayfly-${table}.parquet`],
    ])
    const rows = async (bytes: Buffer, format: string) => {
      const path = join(folder, `${table}.${format}`)
      await writeFile(path, bytes)
      return linesOf(query(`SELECT * FROM file('${path}', '${format}')`, 'JSONCompactEachRow'))
    }
    // Exports are counted too, in a row for their route.
    const linesOf = (text: string) =>
      text
        .trim()
        .split('\n')
        .filter((line) => !/usage.*export/.test(line))
    const lines = linesOf(ndjson.bytes.toString())
    expect(await rows(parquet.bytes, 'Parquet')).toHaveLength(lines.length)
    expect(await rows(csv.bytes, 'CSVWithNames')).toHaveLength(lines.length)
    const times = lines.map((line) => JSON.parse(line) as Row).map((row) => row.occurred_at ?? row.starts_at)
    for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(csv.bytes.toString()).toContain(`"${String(times[0])}"`)
    expect(Object.keys(JSON.parse(lines[0] ?? '{}') as Row)).toEqual(
      csv.bytes.toString().split('\n')[0]?.replaceAll('"', '').split(','),
    )
  })

  it('is a valid file even without rows', async () => {
    const span = { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z', table: 'requests' }
    expect((await fileOf(admin, { ...span, format: 'ndjson' })).bytes).toHaveLength(0)
    expect((await fileOf(admin, { ...span, format: 'csv' })).bytes.toString()).toMatch(
      /^"account_id",[^\n]+\n$/,
    )
    const parquet = await fileOf(admin, { ...span, format: 'parquet' })
    await writeFile(join(folder, 'none.parquet'), parquet.bytes)
    expect(query(`SELECT count() FROM file('${join(folder, 'none.parquet')}', 'Parquet')`, 'TSV')).toBe('0\n')
  })

  it('is limited to two concurrent exports per account, which do not affect another account', async () => {
    const request = (target: Target) => call(target, 'GET', '/v1/usage/export?table=requests')
    // On a busy machine, each may end before the next one begins.
    const refused = await until('exports at the same time', async () => {
      const exportsStarted = Array.from({ length: 20 }, () => request(admin))
      expect((await request(stranger)).status).toBe(200)
      const answers = await Promise.all(exportsStarted)
      const others = answers.filter(({ status }) => status !== 200)
      return others.length > 0 ? others : null
    })
    for (const answer of refused) {
      expectProblem(answer, { status: 503, code: 'too-many-streams', detail: /2 of them for one account/ })
    }
    expect((await request(admin)).status).toBe(200)
  })

  it('is only for keys of scope admin', async () => {
    const scopes = ['inboxes', 'read', 'audit']
    const target = withKey(mayfly, await issueKey(admin, { scopes }))
    const answer = await call(target, 'GET', '/v1/usage/export')
    expectProblem(answer, { status: 403, code: 'missing-scope' })
    expect(answer.headers.get('www-authenticate')).toContain('insufficient_scope')
  })

  it.each([
    { query: 'format=xlsx', at: 'format' },
    { query: 'table=sink_positions', at: 'table' },
    { query: 'table=requests;drop', at: 'table' },
    { query: 'from=now', at: 'from' },
    { query: 'interval=day', at: 'interval' },
  ])('is refused for ?$query', async ({ query: text, at }) => {
    const answer = await call(admin, 'GET', `/v1/usage/export?${text}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: at }] })
  })

  it('has the creating key for each event of an inbox, even if another key deletes', async () => {
    const inbox = await createInbox(withKey(mayfly, worker), { labels: { run: '43' } })
    await send(mayfly, inbox.address, mail('one'))
    const deleter = withKey(mayfly, await issueKey(admin))
    const [message] = await messagesOf(deleter, inbox.id, 1)
    const path = `/v1/inboxes/${inbox.id}`
    expect((await call(deleter, 'DELETE', `${path}/messages/${message?.id ?? ''}`)).status).toBe(200)
    expect((await call(deleter, 'DELETE', path)).status).toBe(200)
    const rowsOfInbox = async () => {
      const { bytes } = await fileOf(admin, { table: 'inbox_events' })
      const rows = bytes.toString().split('\n').slice(0, -1)
      return rows.map((row) => JSON.parse(row) as Row).filter((row) => row.inbox_id === inbox.id)
    }
    const rows = await untilCounted(rowsOfInbox, ({ length }) => length >= 4)
    const types = ['inbox.created', 'message.received', 'message.deleted', 'inbox.deleted']
    expect(rows).toMatchObject(types.map((type) => ({ type, key_id: worker.id, labels: ['run:43'] })))
  })
})
