import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { call, createInbox, mail, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { answerToRcpt, converse } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { snapshotOfApi, untilReady } from './api-snapshot.js'
import { makeMailRecords, openLog, PARTITIONS } from './stored-log.js'

const MAILS = 4_000
const INBOXES = 16
const PROSE =
  'A paragraph of ordinary length, with a link to https://app.example/verify?t=1 in it.\r\n'.repeat(100)

/** An id that belongs to no inbox, in the partition of an existing inbox. */
function unknownIdBeside(inboxId: string): string {
  for (;;) {
    const id = mintId('inb')
    if (partitionOf(id, PARTITIONS) === partitionOf(inboxId, PARTITIONS)) return id
  }
}

describe('views that were lost', () => {
  let mayfly: Mayfly
  let inboxes: InboxJson[]
  let before: Map<string, string>

  beforeAll(async () => {
    mayfly = await startMayfly()
    inboxes = []
    for (let count = 0; count < INBOXES; count += 1) {
      inboxes.push(await createInbox(mayfly, { name: `inbox ${count}`, labels: { run: String(count % 2) } }))
    }
    const [ended] = inboxes
    await call(mayfly, 'DELETE', `/v1/inboxes/${ended?.id ?? ''}`)
    await mayfly.end('SIGTERM')

    const sources = Array.from({ length: MAILS }, (_, index) =>
      mail(`Your code is ${100_000 + index}`, PROSE),
    )
    const ids = inboxes.slice(1).map(({ id }) => id)
    const records = await makeMailRecords(mayfly.dataDir, ids, sources)
    const log = await openLog(mayfly.dataDir)
    await Promise.all(records.map((record) => log.append('inbox-events', record)))
    await log.close()

    mayfly = await mayfly.restart()
    await untilReady(mayfly)
    before = await snapshotOfApi(
      mayfly,
      inboxes.map(({ id }) => id),
      3,
    )
    await mayfly.end('SIGTERM')
    await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
    mayfly = await mayfly.restart()
  }, 240_000)
  afterAll(() => mayfly.dispose())

  it('are not treated as complete while they are rebuilt', async () => {
    const strangers = inboxes.slice(1).map(({ id }) => unknownIdBeside(id))
    const stranger = `${'z'.repeat(20)}@mayfly.test`
    const [answers, ready, list, rcpt] = await Promise.all([
      Promise.all(strangers.map((id) => call<{ code: string }>(mayfly, 'GET', `/v1/inboxes/${id}`))),
      call<{ code: string }>(mayfly, 'GET', '/readyz'),
      call<{ code: string }>(mayfly, 'GET', '/v1/inboxes'),
      answerToRcpt(mayfly, stranger),
    ])
    expect(await answerToRcpt(mayfly, stranger)).toMatch(/^451 4\.3\.0 /)
    expect(rcpt).toMatch(/^451 4\.3\.0 /)
    for (const { status, headers, body } of [ready, list, ...answers]) {
      expect(status).toBe(503)
      expect(body).toMatchObject({ code: 'catching-up' })
      expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    }
    expect((await call(mayfly, 'GET', '/healthz')).status).toBe(200)
  })

  it('make no inbox for mail to an address that they may lack', async () => {
    const source = [mail('Not yet').trimEnd(), '.'].join('\r\n')
    const lines = [
      'EHLO tests',
      'MAIL FROM:<sender@example.com>',
      'RCPT TO:<new@company.com>',
      'DATA',
      source,
    ]
    const [data, end] = await until('the domains to be known', async () => {
      const [rcpt, ...replies] = (await converse(mayfly.smtpPort, lines)).slice(3)
      return rcpt?.startsWith('250 ') === true ? replies : null
    })
    expect(data).toMatch(/^354 /)
    expect(end).toMatch(/^451 4\.3\.0 .*rebuilt/)
    expect((await call(mayfly, 'GET', '/readyz')).status).toBe(503)
  })

  it('never make a known inbox appear unknown or empty', async () => {
    let looks = 0
    await until(
      'the rebuild to end',
      async () => {
        const { status } = await call(mayfly, 'GET', '/readyz')
        const { id, address } = inboxes[1 + (looks % (INBOXES - 1))] ?? { id: '', address: '' }
        looks += 1
        expect([200, 503]).toContain((await call(mayfly, 'GET', `/v1/inboxes/${id}`)).status)
        const messages = await call<unknown[]>(mayfly, 'GET', `/v1/inboxes/${id}/messages?limit=1`)
        expect([200, 503]).toContain(messages.status)
        if (messages.status === 200) expect(messages.body).toHaveLength(1)
        expect(await answerToRcpt(mayfly, address)).toMatch(/^(250|451) /)
        return status === 200
      },
      120_000,
    )
    expect(looks).toBeGreaterThan(5)
  }, 130_000)

  it('are the same after the rebuild, byte for byte', async () => {
    const after = await snapshotOfApi(
      mayfly,
      inboxes.map(({ id }) => id),
      3,
    )
    expect(before.size).toBeGreaterThan(INBOXES * 6)
    expect([...after.keys()]).toEqual([...before.keys()])
    for (const [path, answer] of before) expect(`${path} ${after.get(path) ?? ''}`).toBe(`${path} ${answer}`)
    expect((await call(mayfly, 'GET', `/v1/inboxes/${mintId('inb')}`)).status).toBe(404)
    expect(await answerToRcpt(mayfly, `${'z'.repeat(20)}@mayfly.test`)).toMatch(/^550 5\.1\.1 /)
    expect((await call(mayfly, 'GET', '/v1/inboxes?address=new@company.com')).body).toEqual([])
  }, 180_000)
})
