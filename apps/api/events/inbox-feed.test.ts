import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { EVENT_NAMES } from '#libs/mail/json/message-json.js'
import { bodyContext, sealJson, makeSecretKey } from '#libs/ports/key-vault/content.js'
import type { KeyLookup } from '#libs/ports/key-vault/key-vault.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { deleted, expired, messageDeleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { evolve, type ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-read-model.js'
import {
  Follower,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { Doorbell, InProcessSignals } from '#libs/ports/signals/signals.js'
import { RequestBudgets } from '../http/budgets.js'
import { Problem, unavailable } from '../http/problems.js'
import { Views } from '../http/views.js'
import type { Instance } from '../instance.js'
import { MessageReader, FirstReadings } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { InboxFeed, RETRY } from './inbox-feed.js'

const id = inboxIdIn(1)
const key = makeSecretKey()
const WHOLE = { order: 'asc', from: 0, to: 1_000, limit: 1_000 } as const
const created = makeInbox(id)
const removal = (n: number): InboxEvent => ({ ...messageDeleted(minute(2), messageId(n)), inboxId: id })
const inboxDeleted: InboxEvent = { ...deleted(minute(3)), inboxId: id }
const inboxExpired: InboxEvent = { ...expired, inboxId: id }

function parsed(n: number): ParsedMail {
  const lists = { from: [], to: [], cc: [], replyTo: [], links: [], codes: [], attachments: [], headers: [] }
  const envelope = { mailFrom: '', rcptTo: created.address, helo: '', remoteAddress: '127.0.0.1', tls: null }
  const nothing = {
    sender: '',
    recipient: created.address,
    date: null,
    text: null,
    html: null,
    htmlText: null,
  }
  return { ...lists, ...nothing, subject: String(n), envelope, size: 1, sha256: '', warnings: [] }
}

describe('the text of a stream', () => {
  let folder: string
  let model: LmdbReadModel
  let follower: Follower
  let now: Date
  let lookup: KeyLookup
  /** As in a process that shows mail again from memory. */
  let opened: OpenedMail
  /** What is on the log. */
  let log: InboxEvent[]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'))
  })
  afterAll(async () => {
    await model.close()
    await rm(folder, { recursive: true })
  })
  beforeEach(() => empty())

  let logs = 0

  /** Views of another log, with the inbox alone. */
  async function empty(): Promise<void> {
    follower = new Follower(model.store, 1)
    await follower.begin({ logId: `log ${(logs += 1)}`, end: 0 })
    now = minute(1)
    lookup = { state: 'known', key }
    opened = new OpenedMail(1_000_000)
    log = []
    await happen(created)
  }

  /** One event behind the others on the log, and in the views where those are whole. */
  async function happen(event: InboxEvent): Promise<void> {
    log.push(event)
    if (follower.position === log.length - 1) await catchUp()
  }

  /** So many events more of those that the views lack. */
  async function catchUp(most = Infinity): Promise<void> {
    for (const event of log.slice(follower.position, follower.position + most)) {
      const step = await follower.stepOf(event)
      const contents = step.contents.map((content) => {
        const body = sealJson(key, bodyContext(id, content.messageId), parsed(numberOf(content.messageId)))
        return { ...content, body }
      })
      expect(await model.store.apply({ ...step, contents })).toBe('applied')
      follower.position = step.to
    }
  }

  async function loseViews(): Promise<void> {
    await follower.begin({ logId: `log ${(logs += 1)}`, end: log.length })
  }

  function listen({ from = 1, authenticate = () => Promise.resolve() } = {}) {
    const { queries, accounts } = model
    const noKeys = () => Promise.reject(new Error('no key is made'))
    const vault = { create: noKeys, find: () => Promise.resolve(lookup) }
    const partitions = layoutOf({ partitionCount: () => PARTITIONS, topology: noKeys })
    const views = new Views(partitions, queries, accounts, vault, new InProcessSignals())
    const instance = { now: () => now } as Instance
    const readings = new FirstReadings({ record: () => undefined }, () => now)
    const budgets = new RequestBudgets({ memoryScale: 1, onExhausted: () => undefined })
    const feed = new InboxFeed(views, new MessageReader(views, opened), opened, instance, readings, budgets)
    const { inbox } = evolve({ inbox: null, message: null }, created)
    const bell = new Doorbell()
    const ending = new AbortController()
    const listening = { inbox: inbox as ActiveInbox, from, family: '/v1/inboxes', bell, authenticate }
    const chunks = feed.chunks(listening, ending.signal)
    return {
      chunks,
      wake: () => bell.ring(),
      end: () => {
        ending.abort()
        bell.ring()
      },
    }
  }

  /** What comes, up to as many events, or to the end; also as it comes, in `heard`. */
  async function told(
    stream: ReturnType<typeof listen>,
    most = Infinity,
    heard: string[] = [],
  ): Promise<string[]> {
    while (heard.length < most) {
      const { done, value } = await stream.chunks.next()
      if (done === true) break
      const [, name] = /^event: (.+)$/m.exec(value) ?? []
      const [, data] = /^data: (.+)$/m.exec(value) ?? []
      if (name === undefined || data === undefined) continue
      const { data: about } = JSON.parse(data) as { data: { id: string } }
      heard.push(about.id === id ? name : `${name} ${numberOf(about.id)}`)
    }
    return heard
  }

  it('begins with the time to come again, and ends with the inbox', async () => {
    const stream = listen()
    expect(await stream.chunks.next()).toEqual({ done: false, value: RETRY })
    await happen(mail(id, messageId(1)))
    await happen(inboxDeleted)
    expect(await stream.chunks.next()).toMatchObject({
      done: false,
      value: expect.stringContaining('event: inbox.deleted\n') as unknown,
    })
    expect(await stream.chunks.next()).toEqual({ done: true, value: 'inbox-ended' })
  })

  it('passes over a message that is gone before it is told, and tells its deletion', async () => {
    for (const n of [1, 2]) await happen(mail(id, messageId(n)))
    await happen(removal(1))
    await happen(inboxDeleted)
    // With the inbox its mail goes.
    expect(await told(listen())).toEqual(['message.deleted 1', 'inbox.deleted'])
  })

  it('tells no deleted message that the process remembers', async () => {
    await happen(mail(id, messageId(1)))
    expect(await told(listen(), 1)).toEqual(['message.received 1'])
    await happen(removal(1))
    expect(await told(listen(), 1)).toEqual(['message.deleted 1'])
  })

  it('goes on behind an event, exactly', async () => {
    for (const n of [1, 2, 3]) await happen(mail(id, messageId(n)))
    expect(await told(listen({ from: 3 }), 1)).toEqual(['message.received 3'])
  })

  it('shows no deleted message of views that are rebuilt, but waits until they are whole', async () => {
    for (const n of [1, 2]) await happen(mail(id, messageId(n)))
    await happen(removal(1))
    await loseViews()
    await catchUp(3)
    const stream = listen()
    const hearing = told(stream, 2)
    for (let turns = 0; turns < 20; turns += 1) {
      await new Promise(setImmediate)
      stream.wake()
    }
    await catchUp()
    stream.wake()
    expect(await hearing).toEqual(['message.received 2', 'message.deleted 1'])
  })

  it('tells each event once and in order, however views are lost and rebuilt and whenever the client reads', async () => {
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
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), fc.boolean(), async (actions, isHeardAtOnce) => {
        await empty()
        const stream = listen()
        const heard: string[] = []
        let isOver = false
        const hear = () => void told(stream, Infinity, heard).then(() => (isOver = true))
        /** As signals would, though none comes when views are whole again. */
        const wakeUntil = async (isSo: () => boolean) => {
          for (const startedMs = Date.now(); !isSo();) {
            if (Date.now() > startedMs + 5_000) throw new Error(`heard no more than ${heard.join(', ')}`)
            stream.wake()
            await new Promise(setImmediate)
          }
        }
        if (isHeardAtOnce) hear()
        let received = 0
        const removed = new Set<number>()
        for (const act of actions) {
          if (act.do === 'receive') await happen(mail(id, messageId((received += 1))))
          if (act.do === 'lose') await loseViews()
          if (act.do === 'catch-up') await catchUp(act.most)
          if (act.do === 'turn') await new Promise(setImmediate)
          if (act.do === 'remove' && received > 0) {
            const n = 1 + (act.which % received)
            await happen(removal(n))
            removed.add(n)
          }
          stream.wake()
        }
        await catchUp()
        if (!isHeardAtOnce) hear()
        const numbers = Array.from({ length: received }, (_, index) => index + 1)
        const kept = numbers.filter((n) => !removed.has(n)).map((n) => `message.received ${n}`)
        const gone = [...removed].map((n) => `message.deleted ${n}`)
        await wakeUntil(() => [...kept, ...gone].every((name) => heard.includes(name)))
        await happen(inboxDeleted)
        await wakeUntil(() => isOver)

        const order = (await model.queries.history({ ...WHOLE, inboxId: id })).slice(1).map((entry) => {
          const name = EVENT_NAMES[entry.type]
          return entry.messageId === null ? name : `${name} ${numberOf(entry.messageId)}`
        })
        const places = heard.map((name) => order.indexOf(name))
        expect(places).toEqual([...new Set(places)].toSorted((one, other) => one - other))
        expect(places).not.toContain(-1)
        expect(heard.filter((name) => kept.includes(name))).toEqual(kept)
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('is over without a refused key’s events', async () => {
    const stream = listen({
      authenticate: () => Promise.reject(new Problem('invalid-api-key', { detail: '' })),
    })
    await stream.chunks.next()
    await happen(mail(id, messageId(1)))
    expect(await stream.chunks.next()).toEqual({ done: true, value: 'key-refused' })
  })

  it('goes on where the key can not be asked for a while', async () => {
    let asked = 0
    const authenticate = () => {
      asked += 1
      return asked === 1 ? Promise.reject(unavailable('read-model-unavailable', '')) : Promise.resolve()
    }
    const stream = listen({ authenticate })
    await stream.chunks.next()
    await happen(mail(id, messageId(1)))
    expect(await told(stream, 1)).toEqual(['message.received 1'])
    expect(asked).toBeGreaterThan(1)
  })

  it('tells of an inbox past its time nothing but its end, which it waits for', async () => {
    const stream = listen()
    await happen(mail(id, messageId(1)))
    expect(await told(stream, 1)).toEqual(['message.received 1'])
    const hearing = told(stream)
    now = created.expiresAt
    await happen(mail(id, messageId(2)))
    stream.wake()
    await new Promise(setImmediate)
    await happen(inboxExpired)
    stream.wake()
    expect(await hearing).toEqual(['inbox.expired'])
  })

  it('waits without a chunk for what is to come, and ends when it is told to', async () => {
    const stream = listen()
    await stream.chunks.next()
    const next = stream.chunks.next()
    await new Promise(setImmediate)
    stream.end()
    expect(await next).toEqual({ done: true, value: undefined })
  })
})

function numberOf(message: string): number {
  for (let n = 0; n < 256; n += 1) if (messageId(n) === message) return n
  throw new Error(`not a message of the example: ${message}`)
}
