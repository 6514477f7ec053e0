import type { AccountEvent } from '#libs/domain/account/events.js'
import { idFromBytes, type InboxId, type KeyId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { InboxCreated, InboxEvent, MessageReceived } from '#libs/domain/inbox/events.js'
import { makeAddress } from '#libs/domain/inbox/new-inbox.js'
import { created, minute, received } from '#libs/domain/inbox/inbox.test-support.js'
import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { LogReader, PartitionRange, StoredRecord } from '#libs/ports/event-log/event-log.js'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { beginViews, type Contents, type Step, type StepOutcome, type ViewStore } from './view-store.js'
import {
  accountSliceBefore,
  inboxRowsBefore,
  projectAccountEvent,
  projectInboxEvents,
} from './projections.js'
import type { ReadModel } from './queries.js'
import { messageKey, messages } from './tables.js'
import type { LoggedEvent } from './views.js'

/** Empty views for one test, with PARTITIONS partitions of inbox-events. */
export interface ReadModelHarness extends ReadModel {
  close(): Promise<void>
}

export const PARTITIONS = 4
export const LOG_ID = 'the-log'

/** Far past all offsets that a test applies. */
const END = 1_000

/** The nth inbox id of a partition. Ids increase with n, also across partitions. */
export function inboxIdIn(partition: number, n = 0): InboxId {
  for (let salt = 0; ; salt += 1) {
    const bytes = Buffer.alloc(16)
    bytes.writeUInt32BE(n, 0)
    bytes.writeUInt32BE(salt, 12)
    const id = idFromBytes('inb', bytes)
    if (partitionOf(id, PARTITIONS) === partition) return id
  }
}

export function makeInbox(inboxId: InboxId, facts: Partial<InboxCreated> = {}): InboxCreated {
  const random = Buffer.from(inboxId.slice(-20))
  return { ...created, inboxId, address: makeAddress(random, 'mayfly.test'), labels: {}, ...facts }
}

export function mail(inboxId: InboxId, messageId: MessageId, at = minute(1)): MessageReceived {
  return { ...received(at, messageId), inboxId, sealed: Buffer.from(`raw of ${messageId}`) }
}

/** Content that expires after the test. The example is in the past, so a store could delete its content at once. */
export function contentOf(
  event: MessageReceived,
  body = Buffer.from(`body of ${event.messageId}`),
): Contents {
  const expiresAt = new Date(Date.now() + 3_600_000)
  return { table: messages, key: messageKey(event), parts: { body, raw: event.sealed }, expiresAt }
}

/** Who deletes inboxes and messages in events of `atOffset`. */
export const ACTOR = 'tok_01h455vb4pex5vsknk084sn02q'

/** An event at an offset, with an id that depends on the offset, its key and its actor. */
export function atOffset<Event extends object>(offset: number, event: Event): LoggedEvent<Event> {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(offset)
  const keyId = 'keyId' in event ? (event.keyId as KeyId) : null
  const actor = 'deletedAt' in event ? ACTOR : null
  const time = minute(offset)
  return { offset, id: idFromBytes('evt', bytes), time, keyId, actor, event }
}

/** The log of a store that reads sources there: all events of which followers have made steps. */
export class FollowedLog implements LogReader {
  readonly logId = LOG_ID
  private readonly records = new Map<string, StoredRecord>()

  add(partition: number, { offset, id, time, event }: LoggedEvent<InboxEvent>): void {
    const { accountId, environment } = created
    const recorded = { id, time, source: '/mayfly/smtp', accountId, environment, keyId: null, event }
    this.records.set(`${partition}/${offset}`, { ...inboxEventCodec.encode(recorded), offset })
  }

  // The port's method is asynchronous.
  // eslint-disable-next-line @typescript-eslint/require-await
  async *read({ partition, first }: PartitionRange): AsyncGenerator<StoredRecord[]> {
    const record = this.records.get(`${partition}/${first}`)
    if (record !== undefined) yield [record]
  }

  partitionCount(): number {
    return PARTITIONS
  }

  topology(): Promise<never> {
    throw new Error('unknown for this log')
  }
}

/** Applies events of one partition of inbox-events, as the projector does. */
export class Follower {
  position = 0

  constructor(
    private readonly store: ViewStore,
    readonly partition: number,
  ) {}

  async begin(range: { logId?: string; first?: number; end?: number } = {}): Promise<number> {
    const { logId = LOG_ID, first = 0, end = END } = range
    const { partition } = this
    const topology = { logId, partitions: [{ topic: 'inbox-events', partition, first, end }] } as const
    const log = layoutOf({
      topology: () => Promise.resolve({ ...topology, partitions: [...topology.partitions] }),
    })
    const { offset } = await beginViews(this.store, log, { topic: 'inbox-events', partition })
    this.position = offset
    return offset
  }

  /** The step for events with consecutive offsets from the follower's position. */
  async stepOf(...events: InboxEvent[]): Promise<Step> {
    const logged = events.map((event, index) => atOffset(this.position + index, event))
    const before = await inboxRowsBefore(this.store, logged)
    const { changes, received: mails } = projectInboxEvents(before, logged)
    if (this.store.log instanceof FollowedLog) {
      for (const event of logged) this.store.log.add(this.partition, event)
    }
    const contents = mails.map(({ event }) => {
      const { parts, ...content } = contentOf(event)
      const { raw: _raw, ...withoutRaw } = parts
      return { ...content, parts: this.store.log === null ? parts : withoutRaw }
    })
    const [from, to] = [this.position, this.position + events.length]
    return { topic: 'inbox-events', partition: this.partition, from, to, changes, contents }
  }

  /** Applies events in one step and advances. */
  async follow(...events: InboxEvent[]): Promise<StepOutcome> {
    const step = await this.stepOf(...events)
    const outcome = await this.store.apply(step)
    if (outcome === 'applied') this.position = step.to
    return outcome
  }
}

/** Makes a follower and begins the views of its partition. */
export async function followerOf(store: ViewStore, partition: number): Promise<Follower> {
  const follower = new Follower(store, partition)
  await follower.begin()
  return follower
}

/** Applies account events from the first offset, one per step. */
export async function followAccounts(store: ViewStore, ...events: AccountEvent[]): Promise<void> {
  const range = { topic: 'account-events', partition: 0, first: 0, end: END } as const
  const log = layoutOf({ topology: () => Promise.resolve({ logId: LOG_ID, partitions: [range] }) })
  let { offset: from } = await beginViews(store, log, range)
  for (const event of events) {
    const changes = projectAccountEvent(await accountSliceBefore(store, event), atOffset(from, event))
    await store.apply({ topic: 'account-events', partition: 0, from, to: from + 1, changes, contents: [] })
    from += 1
  }
}
