import type { AccountId, InboxId } from '#libs/domain/ids/typeid.js'
import { MAX_LABELS } from '#libs/domain/inbox/new-inbox.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { DecodedBatch } from '#libs/ports/event-log/batch-decoding.js'
import type { SecretKey } from '#libs/ports/key-vault/sealing.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import {
  projectInboxEvents,
  type InboxProjection,
  inboxRowsBefore,
} from '#libs/ports/read-model/projections.js'
import { messageKey, messages } from '#libs/ports/read-model/tables.js'
import type { Contents, StepOutcome, ViewStore } from '#libs/ports/read-model/view-store.js'
import { loggedEvent } from '#libs/ports/read-model/views.js'
import type { ConsumedBatch } from '#libs/role/role-consumers.js'
import { chunksByWeight } from '#libs/runtime/chunks.js'
import type { ParseTask } from './parse-task.js'
import type { ParserPool } from './parser-pool.js'

/** Mail source in one step, which is visible only once all of its mails are parsed. Sealed mail is compressed. */
const MAX_SOURCE_BYTES = 32 * 1024 * 1024
/** Writes in one step. Redis is blocked while it applies a step: this many writes take a few milliseconds. */
const MAX_WRITES = 600

/** A part of a batch that is written to the views in one transaction. */
export type InboxStep = Pick<DecodedBatch<InboxEvent>, 'events' | 'undecodable' | 'next'>

/** Divides a batch into steps within the limits. An event that exceeds them has its own step. */
export function stepsOf({ events, undecodable, next }: DecodedBatch<InboxEvent>): InboxStep[] {
  const runs = events.length === 0 ? [[]] : [...chunksByWeight(events, MAX_WRITES, weightOf)]
  let from = -Infinity
  return runs.map((run, index) => {
    const start = from
    const to = runs[index + 1]?.[0]?.offset ?? next
    from = to
    const ofStep = undecodable.filter(({ record: { offset } }) => offset >= start && offset < to)
    return { events: run, undecodable: ofStep, next: to }
  })
}

/** The writes of an event, or the same share of the bytes in a step if that is more. */
function weightOf({ recorded: { event } }: InboxStep['events'][number]): number {
  const bytes = event.type === 'MessageReceived' ? event.size : 0
  return Math.max(writesOf(event), (bytes / MAX_SOURCE_BYTES) * MAX_WRITES)
}

/**
 * An upper bound of the view entries that an event changes. The end of an inbox, and a change, remove each label from a
 * list and add it to one.
 */
function writesOf(event: InboxEvent): number {
  if (event.type === 'InboxCreated') return 6 + 4 * Object.keys(event.labels).length
  if ('messageId' in event) return 8 + 4 * Object.keys(event.inbox?.labels ?? {}).length
  return 10 + 8 * MAX_LABELS
}

/** Projects consecutive events of an inbox partition into one step of the views. */
export class InboxProjector {
  constructor(
    private readonly store: ViewStore,
    private readonly vault: Pick<KeyVault, 'find'>,
    private readonly parser: ParserPool,
  ) {}

  /**
   * Resolves once the views show the events, or the store is at another offset. Rejects if the batch's signal aborts
   * before the step is written.
   */
  async project(
    { topic, partition, from, signal }: ConsumedBatch,
    { events: decoded, next: to }: InboxStep,
  ): Promise<StepOutcome> {
    const events = decoded.map(({ offset, recorded }) => loggedEvent(offset, recorded))
    const { changes, received } = projectInboxEvents(await inboxRowsBefore(this.store, events), events)
    const accountIds = new Map(decoded.map(({ recorded }) => [recorded.event.inboxId, recorded.accountId]))
    const contents = await this.parse(received, accountIds, signal)
    signal.throwIfAborted()
    return this.store.apply({ topic, partition, from, to, changes, contents })
  }

  private async parse(
    received: InboxProjection['received'],
    accountIds: ReadonlyMap<InboxId, AccountId>,
    signal: AbortSignal,
  ): Promise<Contents[]> {
    if (received.length === 0) return []
    const keys = await this.keysOf(new Set(received.map(({ event }) => event.inboxId)))
    const readable = received.flatMap(({ event, expiresAt }) => {
      const { inboxId, messageId, receivedAt, sealed, size } = event
      const key = keys.get(inboxId)
      const accountId = accountIds.get(inboxId)
      if (accountId === undefined) throw new Error(`the account of ${inboxId} is unknown`)
      if (key === undefined) return []
      const task: ParseTask = { accountId, inboxId, messageId, receivedAt, key, sealed, size }
      return [{ task, expiresAt }]
    })
    const tasks = readable.map(({ task }) => task)
    const bodies = await this.parser.parse(tasks, signal)
    return readable.map(({ task, expiresAt }) => {
      const { messageId, sealed: raw } = task
      const body = bodies.get(messageId)
      if (body === undefined) throw new Error(`the parser returned no result for ${messageId}`)
      const parts = this.store.log === null ? { body, raw } : { body }
      return { table: messages, key: messageKey(task), parts, expiresAt }
    })
  }

  /** Omits deleted keys: their inbox ends later in the log, so its mail can't and need not be read. */
  private async keysOf(inboxIds: ReadonlySet<InboxId>): Promise<Map<InboxId, SecretKey>> {
    const keys = new Map<InboxId, SecretKey>()
    await Promise.all(
      [...inboxIds].map(async (inboxId) => {
        const lookup = await this.vault.find(inboxId)
        if (lookup.state === 'unknown') throw new Error(`the key of ${inboxId} is not known yet`)
        if (lookup.state === 'known') keys.set(inboxId, lookup.key)
      }),
    )
    return keys
  }
}
