import { brand } from '#libs/domain/ids/typeid.js'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { evolve, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { deleted, expired, messageDeleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { parseMail } from '#libs/mail/parse.js'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { bodyContext, makeSecretKey, sealJson } from '#libs/ports/key-vault/sealing.js'
import {
  Follower,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { RequestBudgets } from '../http/budgets.js'
import { Problem, unavailable } from '../http/problems.js'
import { Views } from '../views.js'
import type { Instance } from '../instance.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { EventData } from './event-data.js'
import { InboxFeed } from './inbox-feed.js'
import { startStream, type TestStream } from './stream.test-support.js'

const id = inboxIdIn(1)
const key = makeSecretKey()
const WHOLE = { order: 'asc', from: 0, to: 1_000, limit: 1_000 } as const
const created = makeInbox(id)
const removal = (n: number): InboxEvent => ({ ...messageDeleted(minute(2), messageId(n)), inboxId: id })
const inboxDeleted: InboxEvent = { ...deleted(minute(3)), inboxId: id }
const inboxExpired: InboxEvent = { ...expired, inboxId: id }

const parsed = (n: number): ParsedMail => parseMail(Buffer.from(`Subject: ${n}\r\n\r\n`), anyEnvelope)

describe('the text of a stream', () => {
  let folder: string
  let model: LmdbReadModel
  let follower: Follower
  let now: Date
  /** As in a process that caches opened mail. */
  let opened: OpenedMail
  /** The events on the log. */
  let log: InboxEvent[]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'), PARTITIONS)
  })
  afterAll(async () => {
    await model.close()
    await rm(folder, { recursive: true })
  })
  beforeEach(reset)

  /** Starts another log and its views, with only the creation of the inbox. */
  async function reset(): Promise<void> {
    follower = new Follower(model.store, 1)
    await follower.begin({ logId: randomUUID(), end: 0 })
    now = minute(1)
    opened = new OpenedMail(1_000_000)
    log = []
    await append(created)
  }

  /** Appends an event to the log, and adds it to the views if they were complete. */
  async function append(event: InboxEvent): Promise<void> {
    log.push(event)
    if (follower.position === log.length - 1) await catchUp()
  }

  /** Adds the next events to the views, at most `max`. */
  async function catchUp(max = Infinity): Promise<void> {
    for (const event of log.slice(follower.position, follower.position + max)) {
      const step = await follower.stepOf(event)
      const contents = step.contents.map((content) => {
        const messageId = brand('msg', content.key.key)
        const body = sealJson(key, bodyContext(id, messageId), parsed(numberOf(messageId)))
        return { ...content, parts: { ...content.parts, body } }
      })
      expect(await model.store.apply({ ...step, contents })).toBe('applied')
      follower.position = step.to
    }
  }

  async function loseViews(): Promise<void> {
    await follower.begin({ logId: randomUUID(), end: log.length })
  }

  function open({ from = 1, authenticate = () => Promise.resolve() } = {}) {
    const noKeys = () => Promise.reject(new Error('no key is made'))
    const vault = { create: noKeys, find: () => Promise.resolve({ state: 'known' as const, key }) }
    const partitions = layoutOf({ partitionCount: () => PARTITIONS, topology: noKeys })
    const views = new Views(partitions, model.queries, model.accounts, vault, new InProcessSignals())
    const instance = { now: () => now } as Instance
    const readings = new FirstReadings({ record: () => undefined }, () => now)
    const budgets = new RequestBudgets({ memoryScale: 1, onExhausted: () => undefined })
    const events = new EventData(views, new MessageReader(views, opened), budgets, readings, instance)
    const { inbox } = evolve({ inbox: null, message: null }, created)
    return startStream(new InboxFeed(events, inbox as ActiveInbox, from, '/v1/inboxes'), authenticate)
  }

  /** Reads at most `max` events, or all up to the end. Adds each to `events` immediately. */
  async function read(stream: TestStream, max = Infinity, events: string[] = []): Promise<string[]> {
    while (events.length < max) {
      const text = await stream.next()
      if (text === null) break
      const [, name] = /^event: (.+)$/m.exec(text) ?? []
      const [, data] = /^data: (.+)$/m.exec(text) ?? []
      if (name === undefined || data === undefined) continue
      const { data: subject } = JSON.parse(data) as { data: { id: string } }
      events.push(subject.id === id ? name : `${name} ${numberOf(subject.id)}`)
    }
    return events
  }

  it('ends with the inbox', async () => {
    const stream = open()
    await append(mail(id, messageId(1)))
    await append(inboxDeleted)
    expect(await stream.next()).toContain('event: inbox.deleted\n')
    expect(await stream.next()).toBeNull()
    expect(stream.outcome()).toBe('inbox-ended')
  })

  it('skips a message that was deleted before it was sent, and sends its deletion', async () => {
    for (const n of [1, 2]) await append(mail(id, messageId(n)))
    await append(removal(1))
    await append(inboxDeleted)
    // All mail was deleted with the inbox.
    expect(await read(open())).toEqual(['message.deleted 1', 'inbox.deleted'])
  })

  it('does not send a deleted message that is cached', async () => {
    await append(mail(id, messageId(1)))
    expect(await read(open(), 1)).toEqual(['message.received 1'])
    await append(removal(1))
    expect(await read(open(), 1)).toEqual(['message.deleted 1'])
  })

  it('starts exactly at the given offset', async () => {
    for (const n of [1, 2, 3]) await append(mail(id, messageId(n)))
    expect(await read(open({ from: 3 }), 1)).toEqual(['message.received 3'])
  })

  it('does not send deleted messages from views that are being rebuilt, but waits until they are complete', async () => {
    for (const n of [1, 2]) await append(mail(id, messageId(n)))
    await append(removal(1))
    await loseViews()
    await catchUp(3)
    const stream = open()
    const reading = read(stream, 2)
    for (let turns = 0; turns < 20; turns += 1) {
      await new Promise(setImmediate)
      stream.bell.ring()
    }
    await catchUp()
    stream.bell.ring()
    expect(await reading).toEqual(['message.received 2', 'message.deleted 1'])
  })

  it('sends each event once and in order, even if the views are lost and rebuilt and the client reads at any time', async () => {
    const action = fc.oneof(
      { weight: 5, arbitrary: fc.constant({ do: 'receive' as const }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), which: fc.nat(30) }) },
      { weight: 1, arbitrary: fc.constant({ do: 'lose' as const }) },
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constant('catch-up' as const), most: fc.integer({ min: 1, max: 4 }) }),
      },
      { weight: 4, arbitrary: fc.constant({ do: 'turn' as const }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), fc.boolean(), async (actions, isReadAtOnce) => {
        await reset()
        const stream = open()
        const events: string[] = []
        let isOver = false
        const start = () => void read(stream, Infinity, events).then(() => (isOver = true))
        /** Rings the bell instead of signals, since none is sent when the views are complete again. */
        const wakeUntil = async (isDone: () => boolean) => {
          for (const startedMs = Date.now(); !isDone();) {
            if (Date.now() > startedMs + 30_000) throw new Error(`only received ${events.join(', ')}`)
            stream.bell.ring()
            await new Promise(setImmediate)
          }
        }
        if (isReadAtOnce) start()
        let received = 0
        const removed = new Set<number>()
        for (const act of actions) {
          if (act.do === 'receive') await append(mail(id, messageId((received += 1))))
          if (act.do === 'lose') await loseViews()
          if (act.do === 'catch-up') await catchUp(act.most)
          if (act.do === 'turn') await new Promise(setImmediate)
          if (act.do === 'remove' && received > 0) {
            const n = 1 + (act.which % received)
            await append(removal(n))
            removed.add(n)
          }
          stream.bell.ring()
        }
        await catchUp()
        if (!isReadAtOnce) start()
        const numbers = Array.from({ length: received }, (_, index) => index + 1)
        const kept = numbers.filter((n) => !removed.has(n)).map((n) => `message.received ${n}`)
        const gone = [...removed].map((n) => `message.deleted ${n}`)
        await wakeUntil(() => [...kept, ...gone].every((name) => events.includes(name)))
        await append(inboxDeleted)
        await wakeUntil(() => isOver)

        const order = (await model.queries.history({ ...WHOLE, inboxId: id })).slice(1).map((entry) => {
          const name = INBOX_EVENTS[entry.type].publicName
          return entry.messageId === null ? name : `${name} ${numberOf(entry.messageId)}`
        })
        const positions = events.map((name) => order.indexOf(name))
        expect(positions).toEqual([...new Set(positions)].toSorted((one, other) => one - other))
        expect(positions).not.toContain(-1)
        expect(events.filter((name) => kept.includes(name))).toEqual(kept)
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('ends without further events if the key is refused', async () => {
    const stream = open({
      authenticate: () => Promise.reject(new Problem('invalid-api-key', { detail: '' })),
    })
    await append(mail(id, messageId(1)))
    expect(await stream.next()).toBeNull()
    expect(stream.outcome()).toBe('key-refused')
  })

  it('continues if the key could not be checked for a while', async () => {
    let checks = 0
    const authenticate = () => {
      checks += 1
      return checks === 1 ? Promise.reject(unavailable('read-model-unavailable', '')) : Promise.resolve()
    }
    const stream = open({ authenticate })
    await append(mail(id, messageId(1)))
    expect(await read(stream, 1)).toEqual(['message.received 1'])
    expect(checks).toBeGreaterThan(1)
  })

  it('sends only the end of an inbox that has expired, and waits for it', async () => {
    const stream = open()
    await append(mail(id, messageId(1)))
    expect(await read(stream, 1)).toEqual(['message.received 1'])
    const reading = read(stream)
    now = created.expiresAt
    await append(mail(id, messageId(2)))
    stream.bell.ring()
    await new Promise(setImmediate)
    await append(inboxExpired)
    stream.bell.ring()
    expect(await reading).toEqual(['inbox.expired'])
  })

  it('waits for the next event without a text, and ends when the client leaves', async () => {
    const stream = open()
    const next = stream.next()
    await new Promise(setImmediate)
    stream.leave()
    expect(await next).toBeNull()
    expect(stream.outcome()).toBeNull()
  })
})

function numberOf(message: string): number {
  for (let n = 0; n < 256; n += 1) if (messageId(n) === message) return n
  throw new Error(`unknown message: ${message}`)
}
