import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { brand, type InboxId } from '#libs/domain/ids/typeid.js'
import { untilReady } from './api-snapshot.js'
import { eventsOf, makeMailRecords, openLog, openVault, PARTITIONS, recordOf } from './stored-log.js'

const MINUTE_MS = 60_000
const MARKER = 'marker-aexoothu'
/** Views whose file has another time than when it was closed would be rebuilt. */
const AS_IT_IS = { recursive: true, preserveTimestamps: true }

describe('a data folder', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let clock = Date.now()
  let roles: MayflyWithClock

  const start = async () => {
    roles = await startWithClock(join(folder.path, 'data'), clock)
  }
  /** Saves a copy of a part of the folder, or restores it. */
  const keep = (part: string) => cp(join(folder.path, 'data', part), join(folder.path, part), AS_IT_IS)
  const putBack = async (part: string) => {
    await rm(join(folder.path, 'data', part), { recursive: true })
    await cp(join(folder.path, part), join(folder.path, 'data', part), AS_IT_IS)
  }
  const restartAfter = async (work: () => Promise<void>) => {
    await roles.close()
    await work()
    await start()
  }

  beforeEach(async () => {
    folder = await makeFolder()
    await start()
  })
  afterEach(async () => {
    await roles.close()
    await folder.remove()
  })

  async function inboxWithMail(body: unknown = {}): Promise<InboxJson> {
    const inbox = await createInbox(roles, body)
    await send(roles, inbox.address, mail(MARKER))
    await messagesOf(roles, inbox.id, 1)
    return inbox
  }

  /** The statuses of all paths of an inbox. Expects that no answer contains the marker. */
  async function statusesOf({ id }: InboxJson): Promise<number[]> {
    const paths = [`/v1/inboxes/${id}`, `/v1/inboxes/${id}/messages`]
    const answers = await Promise.all(paths.map((path) => call(roles, 'GET', path)))
    for (const { body } of answers) expect(JSON.stringify(body)).not.toContain(MARKER)
    return answers.map(({ status }) => status)
  }

  it('with an old copy of its views shows nothing of an ended inbox', async () => {
    const inbox = await inboxWithMail()
    await restartAfter(() => keep('read-model'))
    expect((await call(roles, 'DELETE', `/v1/inboxes/${inbox.id}`)).status).toBe(200)
    await untilForgotten(1)
    await restartAfter(() => putBack('read-model'))
    for (const status of await statusesOf(inbox)) expect([410, 503]).toContain(status)
    await untilReady(roles)
    expect(await statusesOf(inbox)).toEqual([410, 410])
    expect(await answerToRcpt(roles, inbox.address)).toMatch(/^550 /)
  })

  it('with an old copy of its log rebuilds its views from it, and continues', async () => {
    const kept = await inboxWithMail()
    const ended = await inboxWithMail()
    await restartAfter(() => keep('event-log'))
    const lost = await inboxWithMail()
    await send(roles, kept.address, mail('lost'))
    await messagesOf(roles, kept.id, 2)
    await call(roles, 'DELETE', `/v1/inboxes/${ended.id}`)
    await untilForgotten(1)
    await restartAfter(() => putBack('event-log'))
    await untilReady(roles)
    expect((await call(roles, 'GET', `/v1/inboxes/${lost.id}`)).status).toBe(404)
    expect((await messagesOf(roles, kept.id, 1)).map(({ subject }) => subject)).toEqual([MARKER])
    expect(await statusesOf(ended)).not.toContain(200)
    await send(roles, kept.address, mail('anew'))
    expect((await messagesOf(roles, kept.id, 2)).map(({ subject }) => subject)).toEqual([MARKER, 'anew'])
  })

  it('that was stopped between the end of an inbox and its erasure completes the erasure at the next start', async () => {
    const inbox = await inboxWithMail()
    await restartAfter(async () => {
      const log = await openLog(roles.dataDir)
      const event = {
        type: 'InboxDeleted',
        inboxId: idOf(inbox),
        keyId: mintId('key'),
        deletedAt: new Date(),
        inbox: null,
      } as const
      await log.append('inbox-events', recordOf(event))
      await log.close()
      const vault = await openVault(roles.dataDir)
      expect(await vault.find(idOf(inbox))).toMatchObject({ state: 'known' })
      await vault.close()
    })
    await untilForgotten(1)
    await untilReady(roles)
    expect(await statusesOf(inbox)).toEqual([410, 410])
  })

  it('ends inboxes that expired while it was down once, after their mail', async () => {
    const inbox = await inboxWithMail({ duration: '1m' })
    await restartAfter(() => {
      clock += 10 * MINUTE_MS
      return Promise.resolve()
    })
    expect(await statusesOf(inbox)).toEqual([410, 410])
    await untilExpired(1)
    const { body } = await call<{ ended_at: string }>(roles, 'GET', `/v1/inboxes/${inbox.id}`)
    expect(body.ended_at).toBe(inbox.expires_at)
    await roles.close()
    const events = await eventsOf(roles.dataDir, idOf(inbox))
    const types = events.map(({ type }) => type).filter((type) => type !== 'InboxErased')
    expect(types).toEqual(['InboxCreated', 'MessageReceived', 'InboxExpired'])
  })

  it('does not end inboxes again while its views are rebuilt', async () => {
    const inbox = await inboxWithMail({ duration: '1m' })
    const neighbour = await until('an inbox in the same partition', async () => {
      const one = await createInbox(roles)
      return partitionOf(one.id, PARTITIONS) === partitionOf(inbox.id, PARTITIONS) ? one : null
    })
    // Enough for several batches between the creation and the end of the inbox.
    await restartAfter(async () => {
      const sources = Array.from({ length: 4_500 }, (_, index) => mail(`Mail ${index}`))
      const records = await makeMailRecords(roles.dataDir, [neighbour.id], sources)
      const log = await openLog(roles.dataDir)
      await Promise.all(records.map((record) => log.append('inbox-events', record)))
      await log.close()
    })
    await untilReady(roles)
    clock += 10 * MINUTE_MS
    await roles.setClock(clock)
    await untilExpired(1)
    await restartAfter(() => rm(join(roles.dataDir, 'read-model'), { recursive: true }))
    await untilReady(roles)
    // Once an inbox created now has expired, all due inboxes have been checked.
    await inboxWithMail({ duration: '1m' })
    clock += 10 * MINUTE_MS
    await roles.setClock(clock)
    await untilExpired(1)
    await roles.close()
    const events = await eventsOf(roles.dataDir, idOf(inbox))
    expect(events.filter(({ type }) => type === 'InboxExpired')).toHaveLength(1)
  }, 180_000)

  /** A metric of the running roles since their start. */
  async function metric(name: string): Promise<number> {
    const { body } = await call<string>(roles, 'GET', '/metrics')
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(body)?.[1])
  }

  function untilForgotten(keys: number): Promise<boolean> {
    return until(
      `${keys} keys to be forgotten`,
      async () => (await metric('mayfly_forgotten_keys_total')) >= keys,
    )
  }

  function untilExpired(inboxes: number): Promise<boolean> {
    return until(
      `${inboxes} inboxes to end`,
      async () => (await metric('mayfly_expired_inboxes_total')) >= inboxes,
    )
  }
})

function idOf({ id }: InboxJson): InboxId {
  return brand('inb', id)
}
