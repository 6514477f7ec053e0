import { brand } from '#libs/domain/ids/typeid.js'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { deleted, messageDeleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
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
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import { type Doorbell, InProcessSignals } from '#libs/ports/signals/signals.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { RequestBudgets } from '../http/budgets.js'
import type { Instance } from '../instance.js'
import { FirstReadings, MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { Views } from '../views.js'
import { EnvironmentFeed } from './environment-feed.js'
import { EventData } from './event-data.js'
import { startStream } from './stream.test-support.js'

const key = makeSecretKey()
const parsed = parseMail(Buffer.from('Subject: One\r\n\r\n'), anyEnvelope)

/** An inbox in a partition of its own: the events on the log, and the views of them. */
class Partition {
  readonly log: InboxEvent[]
  readonly inboxId
  private readonly follower: Follower

  constructor(
    private readonly model: LmdbReadModel,
    readonly number: number,
  ) {
    this.inboxId = inboxIdIn(number)
    this.log = [makeInbox(this.inboxId, { isProtected: false })]
    this.follower = new Follower(model.store, number)
  }

  /** Loses the views. They are complete once they have all events that the log has now. */
  async loseViews(): Promise<void> {
    await this.follower.begin({ logId: randomUUID(), end: this.log.length })
  }

  /** Appends an event to the log, and adds it to the views if they were complete. */
  async append(event: InboxEvent): Promise<void> {
    this.log.push(event)
    if (this.follower.position === this.log.length - 1) await this.catchUp()
  }

  /** Adds the next events to the views, at most `max`. */
  async catchUp(max = Infinity): Promise<void> {
    const { follower, inboxId } = this
    for (const event of this.log.slice(follower.position, follower.position + max)) {
      const step = await follower.stepOf(event)
      const contents = step.contents.map((content) => {
        const body = sealJson(key, bodyContext(inboxId, brand('msg', content.key.key)), parsed)
        return { ...content, parts: { ...content.parts, body } }
      })
      expect(await this.model.store.apply({ ...step, contents })).toBe('applied')
      follower.position = step.to
    }
  }
}

/** The ids of messages by their numbers. */
const numbers = Array.from({ length: 60 }, (_, n) => String(messageId(n)))

describe('the text of a stream of an environment', () => {
  let folder: string
  let model: LmdbReadModel

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'), PARTITIONS)
  })
  afterAll(async () => {
    await model.close()
    await rm(folder, { recursive: true })
  })

  /** Starts another log and its views, with only the creation of an inbox in each partition. */
  async function begin(): Promise<Partition[]> {
    const partitions = Array.from({ length: PARTITIONS }, (_, number) => new Partition(model, number))
    for (const partition of partitions) await partition.loseViews()
    for (const partition of partitions) await partition.catchUp()
    return partitions
  }

  /** What the streams of a process share. `beforeList` is called before each list of messages is read. */
  function contextOf(beforeList: () => Promise<void>): EventData {
    const noKeys = () => Promise.reject(new Error('no key is made'))
    const vault = { create: noKeys, find: () => Promise.resolve({ state: 'known' as const, key }) }
    const partitions = layoutOf({ partitionCount: () => PARTITIONS, topology: noKeys })
    const queries = Object.create(model.queries) as MailQueries
    queries.listEnvironmentMessages = async (query) => {
      await beforeList()
      return model.queries.listEnvironmentMessages(query)
    }
    const views = new Views(partitions, queries, model.accounts, vault, new InProcessSignals())
    const opened = new OpenedMail(1_000_000)
    const readings = new FirstReadings({ record: () => undefined }, () => minute(1))
    const instance = { now: () => minute(1) } as Instance
    const budgets = new RequestBudgets({ memoryScale: 1, onExhausted: () => undefined })
    return new EventData(views, new MessageReader(views, opened), budgets, readings, instance)
  }

  function open(events = contextOf(() => Promise.resolve())) {
    const { accountId, environment } = makeInbox(inboxIdIn(0))
    const from = Array.from({ length: PARTITIONS }, () => 0)
    return startStream(new EnvironmentFeed(events, { accountId, environment }, [], from))
  }

  it('is read once for all streams that have the same position', async () => {
    const [partition] = await begin()
    if (partition === undefined) throw new Error('there is no partition')
    let lists = 0
    const context = contextOf(() => {
      lists += 1
      return Promise.resolve()
    })
    const streams = Array.from({ length: 50 }, () => open(context))
    await partition.append(mail(partition.inboxId, messageId(1)))
    for (const { bell } of streams) bell.ring()
    const texts = await Promise.all(streams.map(({ next }) => next()))
    expect(new Set(texts)).toEqual(new Set([expect.stringContaining('event: message.received\n')]))
    // Each read lists every partition. The first one may have been before the mail.
    expect(lists).toBeLessThanOrEqual(2 * PARTITIONS)
    for (const { leave } of streams) leave()
  })

  const action = fc.record({
    do: fc.constantFrom(...(['receive', 'receive', 'remove', 'lose', 'catch-up', 'turn'] as const)),
    partition: fc.nat({ max: PARTITIONS - 1 }),
    number: fc.nat({ max: 20 }),
  })

  it('has the events of views that are lost between two reads of them', async () => {
    const partitions = await begin()
    const [partition] = partitions
    if (partition === undefined) throw new Error('there is no partition')
    for (const n of [1, 2]) await partition.append(mail(partition.inboxId, messageId(n)))
    const loss = { isBegun: false, isDone: false }
    const loseOnce = async () => {
      if (loss.isBegun) return
      loss.isBegun = true
      await partition.loseViews()
      loss.isDone = true
    }
    const stream = open(contextOf(loseOnce))
    const texts: string[] = []
    const reading = (async () => {
      for (let text = await stream.next(); text !== null; text = await stream.next()) texts.push(text)
    })()
    await ringUntil(stream.bell, () => loss.isDone)
    await partition.catchUp()
    await ringUntil(stream.bell, () => texts.length === 2)
    stream.leave()
    await reading
  })

  it('has each event once, those of an inbox in order, also if views are lost and rebuilt at any time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        const partitions = await begin()
        const stream = open()
        /** What was sent of each inbox: the numbers of messages, negative for deletions. */
        const sent = new Map<string, number[]>(partitions.map(({ inboxId }) => [inboxId, []]))
        const ended = new Set<string>()
        const reading = (async () => {
          for (let text = await stream.next(); text !== null; text = await stream.next()) {
            const [, data] = /^data: (.+)$/m.exec(text) ?? []
            if (data === undefined) continue
            const { type, data: about } = JSON.parse(data) as {
              type: string
              data: { id: string; inbox_id: string }
            }
            const sign = type === 'message.deleted' ? -1 : 1
            if (type === 'inbox.deleted') ended.add(about.id)
            else sent.get(about.inbox_id)?.push(sign * numbers.indexOf(about.id))
          }
        })()
        const expected = new Map(partitions.map(({ inboxId }) => [inboxId, new Map<number, boolean>()]))
        let last = 0
        for (const { do: what, partition: index, number } of actions) {
          const partition = partitions[index]
          if (partition === undefined) continue
          const { inboxId } = partition
          const kept = expected.get(inboxId) ?? new Map<number, boolean>()
          if (what === 'lose') await partition.loseViews()
          if (what === 'catch-up') await partition.catchUp(1 + (number % 4))
          if (what === 'turn') await new Promise(setImmediate)
          if (what === 'receive') {
            last += 1
            kept.set(last, true)
            await partition.append(mail(inboxId, messageId(last)))
          }
          const [victim] = [...kept.keys()].slice(number % (kept.size + 1))
          if (what === 'remove' && victim !== undefined && kept.get(victim) === true) {
            kept.set(victim, false)
            await partition.append({ ...messageDeleted(minute(2), messageId(victim)), inboxId })
          }
          stream.bell.ring()
        }
        for (const partition of partitions) await partition.catchUp()
        const isSent = () =>
          [...expected].every(([inboxId, messages]) =>
            [...messages].every(([n, isKept]) => sent.get(inboxId)?.includes(isKept ? n : -n)),
          )
        await ringUntil(stream.bell, isSent)
        for (const partition of partitions) {
          await partition.append({ ...deleted(minute(3)), inboxId: partition.inboxId })
        }
        await ringUntil(stream.bell, () => ended.size === PARTITIONS)
        stream.leave()
        await reading

        for (const [inboxId, messages] of expected) {
          const events = sent.get(inboxId) ?? []
          expect(new Set(events).size).toBe(events.length)
          const kept = [...messages].flatMap(([n, isKept]) => (isKept ? [n] : []))
          expect(events.filter((n) => kept.includes(n))).toEqual(kept)
        }
      }),
      { numRuns: 60 },
    )
  })
})

/** Rings instead of signals, since none is sent when the views are complete again. */
async function ringUntil(bell: Doorbell, isDone: () => boolean): Promise<void> {
  for (const startedMs = Date.now(); !isDone();) {
    if (Date.now() > startedMs + 30_000) throw new Error('events are missing')
    bell.ring()
    await new Promise(setImmediate)
  }
}
