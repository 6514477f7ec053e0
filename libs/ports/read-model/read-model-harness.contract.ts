import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { InboxCreated, InboxEvent, MessageReceived } from '#libs/domain/inbox/events.js'
import { created, minute, received } from '#libs/domain/inbox/inbox.test-support.js'
import { makeAddress } from '#libs/domain/inbox/inbox.js'
import { idFromBytes, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import { projectInboxEvents, rowsConcerned, projectAccountEvent, sliceConcerned } from './projections.js'
import { type ProjectionStore, type Step, type StepOutcome, beginViews } from './projection-store.js'
import type { MessageContent, PlacedEvent } from './views.js'
import type { ReadModel } from './queries.js'

/** Empty views for one test, of inbox-events with PARTITIONS. */
export interface ReadModelHarness extends ReadModel {
  close(): Promise<void>
}

export const PARTITIONS = 4
export const LOG_ID = 'the-log'

/** Far behind all that a test applies. */
const END = 1_000

/** The nth inbox id of a partition; ids grow with n, also from one partition to another. */
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

/** The example lies in the past, where a store may drop content at once: this lasts as long as the test. */
export function contentOf({ inboxId, messageId, sealed }: MessageReceived): MessageContent {
  const expiresAt = new Date(Date.now() + 3_600_000)
  return { inboxId, messageId, body: Buffer.from(`body of ${messageId}`), raw: sealed, expiresAt }
}

/** An event at an offset, with what the log would say of it: an id of that offset's, and its own key. */
export function placedAt(offset: number, event: InboxEvent): PlacedEvent<InboxEvent> {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(offset)
  return { offset, id: idFromBytes('evt', bytes), keyId: 'keyId' in event ? event.keyId : null, event }
}

/** Follows one partition of inbox-events, as the projector does. */
export class Follower {
  position = 0

  constructor(
    private readonly store: ProjectionStore,
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

  /** The step that events lead to from where the follower stands, each at an offset of its own. */
  async stepOf(...events: InboxEvent[]): Promise<Step> {
    const placed = events.map((event, index) => placedAt(this.position + index, event))
    const { inboxIds, messageKeys } = rowsConcerned(placed)
    const [inboxRows, messageRows] = await Promise.all([
      this.store.inboxes(inboxIds),
      this.store.messages(messageKeys),
    ])
    const inboxes = new Map(inboxRows.flatMap((row) => (row === null ? [] : [[row.inbox.id, row] as const])))
    const messages = new Map(
      messageRows.flatMap((row) => (row === null ? [] : [[row.message.id, row] as const])),
    )
    const { changes, received: mails } = projectInboxEvents({ inboxes, messages }, placed)
    const contents = mails.map(({ event }) => contentOf(event))
    const [from, to] = [this.position, this.position + events.length]
    return { topic: 'inbox-events', partition: this.partition, from, to, changes, contents }
  }

  /** Applies events in one step and moves on. */
  async follow(...events: InboxEvent[]): Promise<StepOutcome> {
    const step = await this.stepOf(...events)
    const outcome = await this.store.apply(step)
    if (outcome === 'applied') this.position = step.to
    return outcome
  }
}

/** A follower of a partition whose views are begun. */
export async function followerOf(store: ProjectionStore, partition: number): Promise<Follower> {
  const follower = new Follower(store, partition)
  await follower.begin()
  return follower
}

/** Applies account events from the first on, one a step. */
export async function followAccounts(store: ProjectionStore, ...events: AccountEvent[]): Promise<void> {
  const range = { topic: 'account-events', partition: 0, first: 0, end: END } as const
  const log = layoutOf({ topology: () => Promise.resolve({ logId: LOG_ID, partitions: [range] }) })
  let { offset: from } = await beginViews(store, log, range)
  for (const event of events) {
    const changes = projectAccountEvent(await store.accountSlice(sliceConcerned(event)), event)
    await store.apply({ topic: 'account-events', partition: 0, from, to: from + 1, changes, contents: [] })
    from += 1
  }
}
