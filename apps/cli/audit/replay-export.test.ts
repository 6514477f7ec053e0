import { hash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { writeLeaf, writeRecord } from '#libs/domain/audit/leaf.js'
import { writeEntries } from '#libs/domain/audit/tiles.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { accountEventCodec, inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { replayExport, type Replay } from './replay-export.js'

const bytes = (n: number) => Buffer.alloc(16, n)
const [accountId, keyId, otherKeyId] = [
  idFromBytes('acc', bytes(1)),
  idFromBytes('key', bytes(2)),
  idFromBytes('key', bytes(3)),
]
const [inboxId, endedId] = [idFromBytes('inb', bytes(4)), idFromBytes('inb', bytes(5))]
const [messageId, deletedId] = [idFromBytes('msg', bytes(6)), idFromBytes('msg', bytes(7))]
const at = (minute: number) => new Date(Date.UTC(2026, 10, 21, 9, minute))

const keyIssued = (id: typeof keyId, environment: string): AccountEvent => ({
  ...{ type: 'ApiKeyIssued', accountId, keyId: id, name: 'suite', environment, scopes: ['inboxes'] },
  ...{ rateLimit: null, secretHash: 'f'.repeat(64), prefix: 'mf_st', expiresAt: at(30), owner: 'service' },
  ...{ createdBy: null, issuedAt: at(1) },
})
const inboxCreated = (id: typeof inboxId, labels: Record<string, string>): InboxEvent => ({
  ...{ type: 'InboxCreated', inboxId: id, accountId, environment: 'staging', keyId, labels },
  ...{ address: 'k3v9@mayfly.test' as never, duration: '24h', maxMessages: 100, isProtected: false },
  ...{
    createdAt: at(2),
    expiresAt: at(60 * 24 + 2),
    faults: null,
    cause: null,
    sealed: Buffer.from('sealed name'),
  },
})
const received = (id: typeof messageId): InboxEvent => ({
  ...{
    type: 'MessageReceived',
    inboxId,
    messageId: id,
    receivedAt: at(3),
    size: 1_834,
    digest: 'd'.repeat(64),
  },
  ...{
    sealed: Buffer.from('sealed mail'),
    duplicateOf: null,
    fingerprint: null,
    inbox: { keyId, labels: {} },
  },
})

const EVENTS: (AccountEvent | InboxEvent)[] = [
  { type: 'AccountOpened', accountId, name: 'Example Ltd', plan: 'pro', limits: null, openedAt: at(0) },
  keyIssued(keyId, 'staging'),
  keyIssued(otherKeyId, 'production'),
  inboxCreated(inboxId, { run: '42', at: 'night' }),
  inboxCreated(endedId, {}),
  received(messageId),
  received(deletedId),
  { type: 'MessageDeleted', inboxId, messageId: deletedId, keyId, deletedAt: at(4), inbox: null },
  { type: 'InboxDeleted', inboxId: endedId, keyId, deletedAt: at(5), inbox: null },
  { type: 'ApiKeyExpired', accountId, keyId: otherKeyId, expiredAt: at(30) },
]

/** It may change only if the state has other properties, which the changelog must say. */
const DIGEST = 'e312e955bd460872aefcc080df82d9b35361acd4a3ab928e90ffca13c6753504'

describe('the replay of an export', () => {
  let folder: string

  const write = async (path: string, content: string | Buffer) => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }

  async function replay(
    size: number | null = null,
  ): Promise<{ done: Replay; lines: Record<string, unknown>[] }> {
    const lines: Record<string, unknown>[] = []
    const replaying = replayExport(folder, size)
    for (;;) {
      const { done, value } = await replaying.next()
      if (done === true) return { done: value, lines }
      lines.push(JSON.parse(value.toString()) as Record<string, unknown>)
    }
  }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-replay-'))
    const records = EVENTS.map((event, index) => {
      const recorded = {
        ...{ id: idFromBytes('evt', bytes(index + 20)), time: at(index), source: '/mayfly/api' },
        ...{ accountId, environment: 'staging', keyId },
      }
      const isOfInbox = 'inboxId' in event
      const record = writeRecord(
        isOfInbox
          ? inboxEventCodec.encode({ ...recorded, event: event as InboxEvent })
          : accountEventCodec.encode({ ...recorded, event: event }),
      )
      const topic = isOfInbox ? 'inbox-events' : 'account-events'
      const leaf = writeLeaf({
        ...{ id: recorded.id, type: `mayfly.${event.type}`, time: recorded.time, actor: keyId, topic },
        ...{ environment: 'staging', subject: 'any', partition: 0, offset: index },
        recordSha256: hash('sha256', record),
      })
      return { record, leaf }
    })
    await write(`tile/entries/000.p/${records.length}`, writeEntries(records.map(({ leaf }) => leaf)))
    await write(`records/0-${records.length}.ndjson`, records.map(({ record }) => `${record}\n`).join(''))
    await write('checkpoint', `mayfly.example.com/log\n${records.length}\nroot\n\n`)
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('has the same digest on any machine', async () => {
    const { done, lines } = await replay()
    expect(done).toEqual({
      ...{
        size: EVENTS.length,
        without_record: 0,
        inboxes: 1,
        ended_inboxes: 1,
        messages: 1,
        digest: DIGEST,
      },
    })
    expect(lines.map(({ id }) => id)).toEqual([accountId, keyId, otherKeyId, inboxId, messageId, endedId])
    expect(lines[2]).toMatchObject({ environment: 'production', expired_at: at(30).toISOString() })
    expect(lines[3]).toMatchObject({
      labels: { at: 'night', run: '42' },
      message_count: 1,
      received_count: 2,
    })
  })

  it('ends after the wanted number of leaves', async () => {
    const { done, lines } = await replay(4)
    expect(done).toMatchObject({ size: 4, inboxes: 1, ended_inboxes: 0, messages: 0 })
    expect(lines.at(-1)).toMatchObject({ id: inboxId, message_count: 0 })
    await expect(replay(0)).rejects.toThrow('the account did not exist then')
    await expect(replay(EVENTS.length + 1)).rejects.toThrow(`the export has ${EVENTS.length} leaves`)
  })

  it.each([
    ['a further line', (text: string) => `${text}{}\n`, 'it does not have 10 lines'],
    [
      'a line less',
      (text: string) => text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1),
      'it does not have 10 lines',
    ],
    ['a part of a line less', (text: string) => text.slice(0, -2), 'it does not have 10 lines'],
    [
      'other line ends',
      (text: string) => text.replaceAll('\n', '\r\n'),
      'record of leaf 0: it is not the one',
    ],
    ['an altered record', (text: string) => text.replace('Zm', 'Zn'), /record of leaf \d: it is not the one/],
  ])('refuses records with %s', async (_, alter, message) => {
    const path = `records/0-${EVENTS.length}.ndjson`
    const text = await readFile(join(folder, path), 'utf8')
    const altered = alter(text)
    expect(altered).not.toBe(text)
    await write(path, altered)
    await expect(replay()).rejects.toThrow(message)
  })

  it('counts records that the event log no longer had', async () => {
    const path = `records/0-${EVENTS.length}.ndjson`
    const lines = (await readFile(join(folder, path), 'utf8')).split('\n')
    await write(path, lines.with(6, '').join('\n'))
    expect((await replay()).done).toMatchObject({ without_record: 1, messages: 1 })
  })
})
