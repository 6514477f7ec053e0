import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { accountEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { LogRecord } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { brand, idFromBytes } from '#libs/domain/ids/typeid.js'
import type { RegistrationEvent, SealedSecret } from '#libs/domain/webhook/events.js'
import { evolve, REMOVED, type WebhookEntry } from '#libs/domain/webhook/webhook.js'
import { call, createInbox, inboxWith, mail } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { untilReady } from './api-snapshot.js'
import { openLog, PARTITIONS } from './stored-log.js'

const OLD_ID = idFromBytes('whk', Buffer.alloc(16, 7))

/** A registration of another webhook in the old format, before URLs were encrypted. */
function withUrlAsText({ key, headers, value }: LogRecord, url: string) {
  const data = JSON.parse(Buffer.from(value).toString()) as object
  return { key, headers, value: Buffer.from(JSON.stringify({ ...data, webhook_id: OLD_ID, url })) }
}

describe('registrations of webhooks on the log', () => {
  let mayfly: Mayfly

  beforeEach(async () => {
    mayfly = await startMayfly()
  })
  afterEach(() => mayfly.dispose())

  /** The webhook events on the log with their records, and the ends of inbox-events. Mayfly must be stopped. */
  async function readLog() {
    const log = await openLog(mayfly.dataDir)
    const found: { record: LogRecord; event: RegistrationEvent }[] = []
    const { partitions } = await log.topology('account-events')
    for (const range of partitions) {
      for await (const records of log.read(range)) {
        for (const record of records) {
          const decoded = accountEventCodec.decode(record)
          const event = decoded.kind === 'event' ? decoded.recorded.event : null
          if (event !== null && 'webhookId' in event) found.push({ record, event })
        }
      }
    }
    const ends = (await log.topology('inbox-events')).partitions.map(({ partition, end }) => ({
      partition,
      offset: end,
    }))
    await log.close()
    return { found, ends }
  }

  it('have the end offsets of inbox-events at that time: of the partition of the inbox, or of all', async () => {
    const inbox = await inboxWith(mayfly, mail('one'), mail('two'))
    for (let made = 0; made < 5; made += 1) await createInbox(mayfly)
    await registerWebhook(mayfly, `/v1/inboxes/${inbox.id}/webhooks`)
    await registerWebhook(mayfly, '/v1/webhooks', { start_from: '2026-11-21T09:00:00+01:00' })
    await mayfly.end('SIGTERM')
    const { found, ends } = await readLog()
    const own = partitionOf(brand('inb', inbox.id), PARTITIONS)
    expect(found.map(({ event }) => event)).toMatchObject([
      { inboxId: inbox.id, startFrom: 'now', positions: ends.filter(({ partition }) => partition === own) },
      { inboxId: null, startFrom: new Date('2026-11-21T08:00:00Z'), positions: ends },
    ])
    expect(ends).toHaveLength(PARTITIONS)
    expect(ends[own]?.offset).toBeGreaterThanOrEqual(3)
  })

  it('have the secrets that were shown, encrypted with the master key', async () => {
    const shown = await registerWebhook(mayfly, '/v1/webhooks')
    const rotated = await call<{ secret: string }>(mayfly, 'POST', `/v1/webhooks/${shown.id}/secret/rotate`)
    await mayfly.end('SIGTERM')
    const { found } = await readLog()
    const masterKeys = MasterKeys.parse(await readFile(join(mayfly.dataDir, 'master.key'), 'utf8'))
    const webhookId = brand('whk', shown.id)
    const open = (sealed: SealedSecret) =>
      `whsec_${masterKeys?.openSecret(webhookId, sealed).toString('base64') ?? ''}`
    const secrets = found.map(({ event }) => ('secret' in event ? open(event.secret) : null))
    expect(secrets).toEqual([shown.secret, rotated.body.secret])
    for (const file of ['event-log/log.mdb', 'read-model/views.mdb']) {
      const stored = await readFile(join(mayfly.dataDir, file))
      for (const secret of [shown.secret, rotated.body.secret]) {
        const text = secret.slice('whsec_'.length)
        expect(stored.includes(text) || stored.includes(Buffer.from(text, 'base64'))).toBe(false)
      }
    }
  })

  it('have the URL encrypted, also if it was plain text before, and no event if the URL stays the same', async () => {
    const url = 'https://ci.example/mail?token=ohghaech'
    const { id } = await registerWebhook(mayfly, '/v1/webhooks', { url })
    const change = () =>
      call<{ url: string }>(mayfly, 'PATCH', `/v1/webhooks/${id}`, { body: { url } }).then(
        ({ body }) => body.url,
      )
    expect(await change()).toBe(url)
    await mayfly.end('SIGTERM')
    const sealed = (await readLog()).found
    expect(sealed.map(({ event }) => event)).toMatchObject([
      { type: 'WebhookRegistered', url: { sealed: expect.anything() as Buffer, hash: null } },
    ])
    const log = await openLog(mayfly.dataDir)
    for (const { record } of sealed) await log.append('account-events', withUrlAsText(record, url))
    await log.close()

    mayfly = await mayfly.restart()
    await untilReady(mayfly)
    const path = `/v1/webhooks/${OLD_ID}`
    const old = () => call<{ url: string }>(mayfly, 'GET', path).then(({ body }) => body.url)
    const seal = () =>
      call<{ url: string }>(mayfly, 'PATCH', path, { body: { url } }).then(({ body }) => body.url)
    expect([await old(), await seal(), await seal(), await old()]).toEqual([url, url, url, url])
    await mayfly.end('SIGTERM')
    expect((await readLog()).found.map(({ event }) => event)).toMatchObject([
      { type: 'WebhookRegistered', webhookId: id },
      { type: 'WebhookRegistered', webhookId: OLD_ID, url },
      { type: 'WebhookChanged', webhookId: OLD_ID, url: { sealed: expect.anything() as Buffer, hash: null } },
    ])
  })

  it('have each of several concurrent rotations, in sequence', async () => {
    const { id } = await registerWebhook(mayfly, '/v1/webhooks')
    const rotate = () => call<{ secret: string }>(mayfly, 'POST', `/v1/webhooks/${id}/secret/rotate`)
    const answers = await Promise.all(Array.from({ length: 4 }, rotate))
    expect(answers.map(({ status }) => status)).toEqual(Array<number>(4).fill(201))
    await mayfly.end('SIGTERM')
    const masterKeys = MasterKeys.parse(await readFile(join(mayfly.dataDir, 'master.key'), 'utf8'))
    const inForce = new Set<string>()
    let webhook: WebhookEntry = null
    for (const { event } of (await readLog()).found) {
      webhook = evolve(webhook, event)
      if (webhook === null || webhook === REMOVED) continue
      const secret = masterKeys?.openSecret(webhook.id, webhook.secret)
      inForce.add(`whsec_${secret?.toString('base64') ?? ''}`)
    }
    expect([...inForce].slice(1).toSorted()).toEqual(answers.map(({ body }) => body.secret).toSorted())
  })

  it('give the same views after a rebuild, and ignore a repeated registration of a removed webhook', async () => {
    const [kept, removed] = [
      await registerWebhook(mayfly, '/v1/webhooks', { events: ['inbox.deleted'] }),
      await registerWebhook(mayfly, '/v1/webhooks'),
    ]
    await call(mayfly, 'DELETE', `/v1/webhooks/${removed.id}`)
    const body = { url: 'http://other.example/', state: 'disabled' }
    const changed = await call(mayfly, 'PATCH', `/v1/webhooks/${kept.id}`, { body })
    await mayfly.end('SIGTERM')
    const { found } = await readLog()
    const log = await openLog(mayfly.dataDir)
    for (const { record, event } of found) {
      if (event.type === 'WebhookRegistered') await log.append('account-events', record)
    }
    await log.close()
    await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
    mayfly = await mayfly.restart()
    await untilReady(mayfly)
    expect((await call(mayfly, 'GET', '/v1/webhooks')).body).toEqual([changed.body])
  })
})
