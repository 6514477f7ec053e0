import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { auditLogOf } from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'
import { brand } from '#libs/domain/ids/typeid.js'
import type { LogRecord } from '#libs/ports/event-log/event-log.js'
import { partitionOf, type TopicName } from '#libs/ports/event-log/topics.js'
import { untilReady } from './api-snapshot.js'
import { damageNewestMail, makeMailRecords, openLog, PARTITIONS } from './stored-log.js'

describe('a record of the log', () => {
  let mayfly: Mayfly
  let inbox: InboxJson
  let elsewhere: InboxJson

  beforeEach(async () => {
    mayfly = await startMayfly()
    inbox = await createInbox(mayfly)
    elsewhere = await until('an inbox in another partition', async () => {
      const one = await createInbox(mayfly)
      return partitionOf(one.id, PARTITIONS) === partitionOf(inbox.id, PARTITIONS) ? null : one
    })
  })
  afterEach(() => mayfly.dispose())

  async function append(make: (dataDir: string) => Promise<LogRecord[]>): Promise<void> {
    await mayfly.end('SIGTERM')
    const records = await make(mayfly.dataDir)
    const log = await openLog(mayfly.dataDir)
    for (const record of records) await log.append('inbox-events', record)
    await log.close()
    mayfly = await mayfly.restart()
  }

  it('counts once if it is on the log twice, in one batch or in two', async () => {
    await append(async (dataDir) => {
      const records = await makeMailRecords(dataDir, [inbox.id], [mail('one'), mail('two')])
      return [...records, ...records]
    })
    await untilReady(mayfly)
    await send(mayfly, inbox.address, mail('three'))
    const subjects = async () => (await messagesOf(mayfly, inbox.id, 3)).map(({ subject }) => subject)
    expect(await subjects()).toEqual(['one', 'two', 'three'])
    await append((dataDir) => recordsOf(dataDir, 'inbox-events'))
    await untilReady(mayfly)
    expect(await subjects()).toEqual(['one', 'two', 'three'])
    expect((await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)).body.message_count).toBe(3)
  })

  it('becomes a dead letter with a reason if it can not be decoded, and the partition continues', async () => {
    await append(async (dataDir) => {
      const [good, other] = await makeMailRecords(dataDir, [inbox.id], [mail('good'), mail('spoilt')])
      if (good === undefined || other === undefined) throw new Error('no records were made')
      return [{ ...other, value: Buffer.from('no CBOR of ours') }, { ...other, headers: {} }, good]
    })
    await untilReady(mayfly)
    expect((await messagesOf(mayfly, inbox.id, 1)).map(({ subject }) => subject)).toEqual(['good'])
    await send(mayfly, inbox.address, mail('later'))
    await messagesOf(mayfly, inbox.id, 2)
    const metrics = await call<string>(mayfly, 'GET', '/metrics')
    expect(metrics.body).toContain('mayfly_dead_letters_total{topic="inbox-events"} 2')
    expect(mayfly.output().stderr).toMatch('a record could not be decoded: written to the dead letters')

    await mayfly.end('SIGTERM')
    const aside = await recordsOf(mayfly.dataDir, 'inbox-events.dead-letter')
    const partition = partitionOf(inbox.id, PARTITIONS)
    expect(aside).toHaveLength(2)
    for (const { key, headers } of aside) {
      expect(key).toBe(inbox.id)
      expect(headers['dead-letter-origin']).toMatch(new RegExp(`^inbox-events/${partition}/\\d+$`))
      expect(headers['dead-letter-reason']).toMatch(/./)
    }
    mayfly = await mayfly.restart()
  })

  it('with an attribute that does not fit into a leaf has none, and the others of its batch have one', async () => {
    const log = await auditLogOf(mayfly)
    const long = 'x'.repeat(70_000)
    await append(async (dataDir) => {
      const all = await recordsOf(dataDir, 'inbox-events')
      const created = all.find(({ key }) => key === inbox.id)
      if (created === undefined) throw new Error('the log has no record of the inbox')
      const { key, value, headers } = created
      const names = ['ce_environment', 'ce_actor', 'ce_id', 'ce_type', 'ce_subject', 'ce_source']
      return names.flatMap((name) => [{ key, value, headers: { ...headers, [name]: long } }, created])
    })
    await untilReady(mayfly)
    await send(mayfly, inbox.address, mail('later'))
    const leaves = await until('a leaf of the mail', async () => {
      const { body } = await call<{ type: string }[]>(
        mayfly,
        'GET',
        `/v1/audit/logs/${log.id}/events?subject=${inbox.id}`,
      )
      return body.length > 0 && body.at(-1)?.type === 'mayfly.inbox.message-received' && body
    })
    expect(leaves.slice(0, -1).map(({ type }) => type)).toEqual(Array(9).fill('mayfly.inbox.created'))
    const metrics = await call<string>(mayfly, 'GET', '/metrics')
    expect(metrics.body).toContain('mayfly_dead_letters_total{topic="inbox-events"} 4')
    expect(metrics.body).not.toMatch(/mayfly_dead_letters_total\{topic="audit-leaves"\} [1-9]/)
    expect(mayfly.output().stderr).toContain('ce_environment has more than 1000 characters')
  })

  it('of a mail that is shown, and damaged later, leaves the rest of the mail, with a warning', async () => {
    await send(mayfly, inbox.address, mail('long', 'Your code is 493201.\r\n'.repeat(500)))
    const [whole] = await messagesOf(mayfly, inbox.id, 1)
    await mayfly.end('SIGTERM')
    await damageNewestMail(mayfly.dataDir, brand('inb', inbox.id))
    mayfly = await mayfly.restart()
    await untilReady(mayfly)
    const [damaged] = await messagesOf(mayfly, inbox.id, 1)
    const warnings = [{ code: 'seal-broken', detail: 'the stored mail is damaged and cannot be opened' }]
    expect(damaged).toEqual({ ...whole, text: null, warnings })
    const raw = `/v1/inboxes/${inbox.id}/messages/${whole?.id ?? ''}/raw`
    expect(await call(mayfly, 'GET', raw)).toMatchObject({ status: 200, body: '' })
  })

  it('of a newer version stops its partition only, and is reported', async () => {
    await append(async (dataDir) => {
      const [first, second] = await makeMailRecords(dataDir, [inbox.id], [mail('before'), mail('newer')])
      if (first === undefined || second === undefined) throw new Error('no records were made')
      return [first, { ...second, headers: { ...second.headers, ce_schemaversion: '2' } }]
    })
    await until('the log line', () => mayfly.output().stderr.includes('schema version 2'))
    expect(mayfly.output().stderr).toMatch(
      /inbox-events\/\d+\/\d+ holds mayfly.inbox.message-received in schema version 2/,
    )
    expect(mayfly.output().stderr).toMatch('deploy a newer one')
    expect(await call(mayfly, 'GET', '/readyz')).toMatchObject({ status: 503, body: { code: 'catching-up' } })
    const listed = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages`)
    expect(listed).toMatchObject({ status: 503, body: { code: 'catching-up' } })

    // Mail is still accepted in every partition. It becomes visible in those that continue.
    expect(await answerToRcpt(mayfly, inbox.address)).toMatch(/^250 /)
    expect(await send(mayfly, inbox.address, mail('waits'))).toMatch(/^250 2\.0\.0 /)
    await send(mayfly, elsewhere.address, mail('elsewhere'))
    expect((await messagesOf(mayfly, elsewhere.id, 1)).map(({ subject }) => subject)).toEqual(['elsewhere'])
    const metrics = await call<string>(mayfly, 'GET', '/metrics')
    expect(metrics.body).not.toMatch(/mayfly_dead_letters_total\{.*\} [1-9]/)
  })
})

/** All records of a topic. */
async function recordsOf(dataDir: string, topic: TopicName): Promise<LogRecord[]> {
  const log = await openLog(dataDir)
  const { partitions } = await log.topology(topic)
  const all: LogRecord[] = []
  for (const range of partitions) for await (const records of log.read(range)) all.push(...records)
  await log.close()
  return all
}
