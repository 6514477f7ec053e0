import { applyDecorators, Inject, Injectable } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { evolve as evolveAccount, type Account, type ApiKey } from '#libs/domain/account/account.js'
import { logIdOf } from '#libs/domain/audit/leaf.js'
import { isId, type EventId, type InboxId, type KeyId, type MessageId } from '#libs/domain/ids/typeid.js'
import { endsInbox, INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import { evolve, type Inbox, type Message } from '#libs/domain/inbox/inbox.js'
import type { Engine } from '#libs/engines/engine.js'
import { accountEventCodec, inboxEventCodec, type EventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { OffsetQuery } from '#libs/ports/read-model/lists.js'
import { messageEventOf, type HistoryEntry } from '#libs/ports/read-model/views.js'
import type { ResourceJson } from '#libs/runtime/resource.js'
import { requireScope, type Principal } from '../access/principal.js'
import { RequestBudgets } from '../http/budgets.js'
import { offsetPageOf, type ListPage } from '../http/list-pages.js'
import { invalid, noResource, notFound, Problem } from '../http/problems.js'
import { nextTurn } from '../http/request-turns.js'
import { IfGiven, IsParsed, parseTime, TIME_FORM, TIME_PATTERN, validated } from '../http/rules.js'
import { hasEnded, Inboxes, setCursor, type OpenInbox } from '../inboxes/inboxes.service.js'
import { ENGINE } from '../instance.js'
import { DescribeProperty } from '../openapi/describe.js'
import { Views } from '../views.js'
import { AuditLogs, notYetCheckpointed, type CheckpointedLog } from './audit-logs.service.js'
import { pastMessageJson } from './past-schemas.js'
import { recordsAt } from './stored-records.js'

/** A number of leaves of the audit log, or a time. */
function parseAsOf(text: string): number | Date | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : parseTime(text)
}

const readAsOf = validated(parseAsOf)

/** `as_of` in a query. */
export function IsAsOf(): PropertyDecorator {
  return applyDecorators(
    DescribeProperty(
      'The state that followed from that number of leaves of the audit log, or from the last checkpoint not after that time (RFC 3339), without content. Requires the scope `audit`.',
    ),
    IfGiven(),
    IsParsed('isAsOf', parseAsOf, `$property must be a number of leaves, or ${TIME_FORM}`, {
      type: 'string',
      pattern: `^(\\d{1,15}|${TIME_PATTERN})$`,
      examples: ['2026-11-21T08:00:00Z', '1042'],
    }),
  )
}

/** The query of handlers that have no other parameter. */
export class AsOf {
  @IsAsOf()
  as_of?: string
}

/** What the description of a handler with `as_of` has in addition. */
export const AS_OF_PROBLEMS = [
  'not-found',
  'not-yet-checkpointed',
  'history-expired',
  'audit-log-contradicted',
  'busy',
] as const

/** The events of an inbox that are read for a state, before and after it. */
const MAX_EVENTS = 20_000
/** Of those, or of an account: the events that are read from the event log. */
const MAX_RECORDS = 1_000
const EVENTS_AT_ONCE = 500
const EXPIRED = 'Events from which the state follows are no longer kept.'

type Read<Entry> = (range: OffsetQuery) => Promise<Entry[]>

interface Listed {
  id: EventId
  offset: number
}

interface Leaves {
  log: CheckpointedLog
  /** The first ones of the log. */
  size: number
}

/** An inbox that was active. */
export interface PastInbox extends OpenInbox {
  /** In the order in which they were received, without deleted ones. */
  messages: { offset: number; message: Extract<Message, { state: 'present' }>; digest: string }[]
  /** The event that has erased the inbox since, or a message of it; null if it still exists. */
  erasedBy: (message?: MessageId) => Erasure | null
}

interface Erasure {
  eventId: EventId
  type: string
  time: Date
}

/** States of the account as of a number of leaves of its audit log, or as of a time. They follow from events only. */
@Injectable()
export class PastStates {
  constructor(
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'log'>,
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly logs: AuditLogs,
    private readonly budgets: RequestBudgets,
  ) {}

  /**
   * The offset after the last event of an inbox that the leaves have. Sets `Mayfly-As-Of`. Throws missing-scope, not-found
   * and not-yet-checkpointed.
   */
  async historyEnd(
    principal: Principal,
    inboxId: InboxId,
    asOf: string,
    reply: FastifyReply,
  ): Promise<number> {
    const leaves = await this.leavesAsOf(principal, asOf, reply)
    const end = await this.budgets.query(
      reply.request,
      () => this.views.readComplete(inboxId, () => this.endOf(leaves, this.historyOf(inboxId))),
      'reads',
    )
    if (end === 0) throw noResource('inbox', inboxId)
    return end
  }

  /**
   * As `historyEnd`. Throws the 410 of an inbox that had ended then, history-expired, and invalid-request for an inbox with
   * too many events.
   */
  async inbox(principal: Principal, inboxId: string, asOf: string, reply: FastifyReply): Promise<PastInbox> {
    const { id } = (await this.inboxes.find(principal, inboxId)).inbox
    const leaves = await this.leavesAsOf(principal, asOf, reply)
    return this.budgets.query(
      reply.request,
      async () => {
        const read = this.historyOf(id)
        const [end, entries] = await this.views.readComplete(id, async () => [
          await this.endOf(leaves, read),
          await readAll(read, reply),
        ])
        return this.fold(id, end, entries, reply)
      },
      'reads',
    )
  }

  /** A page of the messages that an inbox had, as JSON. Throws as `inbox` does. */
  async messages(
    principal: Principal,
    inboxId: string,
    asOf: string,
    query: ListPage,
    reply: FastifyReply,
  ): Promise<ResourceJson[]> {
    const past = await this.inbox(principal, inboxId, asOf, reply)
    const { id } = past.inbox
    const page = await offsetPageOf(id, query, reply, ({ order, from, to, limit }) => {
      const found = past.messages.filter(({ offset }) => offset >= from && offset < to)
      return Promise.resolve((order === 'asc' ? found : found.reverse()).slice(0, limit))
    })
    setCursor(reply, past)
    return page.map(({ message, digest }) =>
      pastMessageJson({ ...message, inboxId: id, digest, erased: past.erasedBy(message.id) }),
    )
  }

  /** The account with the keys that were valid. Throws as `inbox` does. */
  async account(
    principal: Principal,
    asOf: string,
    reply: FastifyReply,
  ): Promise<{ account: Account; activeKeys: ApiKey[] }> {
    const { accountId } = principal
    const leaves = await this.leavesAsOf(principal, asOf, reply)
    const read = (range: OffsetQuery) => this.views.accounts.activity(accountId, range)
    return this.budgets.query(
      reply.request,
      async () => {
        const [end, entries] = await this.views.readAccounts(async () => [
          await this.endOf(leaves, read),
          await readAll(read, reply, ({ subject }) => isId('acc', subject) || isId('key', subject)),
        ])
        const past = entries.filter(({ offset }) => offset < end)
        const partition = { topic: 'account-events', partition: 0 } as const
        const events = await this.recorded(accountEventCodec, partition, past, reply)
        const keys = new Map<KeyId, ApiKey>()
        let account: Account | null = null
        for (const event of events.values()) {
          const keyId = 'keyId' in event ? event.keyId : null
          const key = (keyId === null ? null : keys.get(keyId)) ?? null
          const others = { webhook: null, member: null, domain: null, holder: null }
          const next = evolveAccount({ account, key, ...others }, event)
          account = next.account
          if (next.key !== null) keys.set(next.key.id, next.key)
        }
        if (account === null) throw notFound('The account did not exist then.')
        const activeKeys = [...keys.values()].filter(
          ({ revokedAt, expiredAt }) => revokedAt === null && expiredAt === null,
        )
        return { account, activeKeys }
      },
      'reads',
    )
  }

  /** Applies the events up to an offset. Those of mail follow from the history alone. */
  private async fold(
    id: InboxId,
    end: number,
    entries: readonly HistoryEntry[],
    reply: FastifyReply,
  ): Promise<PastInbox> {
    const past = entries.filter(({ offset }) => offset < end)
    const later = entries.slice(past.length)
    const events = new Map(
      past.flatMap((entry) => {
        const event = messageEventOf(id, entry)
        return event === null ? [] : [[entry.offset, event] as const]
      }),
    )
    const others = past.filter(({ offset }) => !events.has(offset))
    const partition = { topic: 'inbox-events', partition: this.views.partitionOf(id) } as const
    const recorded = await this.recorded(inboxEventCodec, partition, others, reply)
    for (const [offset, event] of recorded) events.set(offset, event)
    const messages = new Map<MessageId, { offset: number; message: Message; digest: string }>()
    let inbox: Inbox | null = null
    for (const entry of past) {
      const event = events.get(entry.offset)
      if (event === undefined) throw new Error(`an event of ${id} was not read`)
      const known = entry.messageId === null ? undefined : messages.get(entry.messageId)
      const { message, ...next } = evolve({ inbox, message: known?.message ?? null }, event)
      inbox = next.inbox
      const { offset, digest } = known ?? entry
      if (message !== null) messages.set(message.id, { offset, message, digest: digest ?? '' })
    }
    if (inbox === null) throw noResource('inbox', id)
    if (inbox.state !== 'active') throw hasEnded(inbox, past.at(-1)?.actor)
    return {
      ...{ inbox, endOffset: end },
      messages: [...messages.values()].flatMap(({ message, ...rest }) =>
        message.state === 'present' ? [{ ...rest, message }] : [],
      ),
      erasedBy(messageId) {
        const erasure = later.find(
          (entry) =>
            endsInbox(entry.type) || (entry.type === 'MessageDeleted' && entry.messageId === messageId),
        )
        return (
          (erasure && { ...erasure, eventId: erasure.id, type: INBOX_EVENTS[erasure.type].publicName }) ??
          null
        )
      },
    }
  }

  /** A log of leaves up to a checkpoint, and how many of them `asOf` means. Sets `Mayfly-As-Of`. */
  private async leavesAsOf(principal: Principal, asOf: string, reply: FastifyReply): Promise<Leaves> {
    requireScope(principal, ['audit'])
    const log = await this.logs.checkpointed(principal, logIdOf(principal.accountId))
    const size = await this.sizeAsOf(log, readAsOf(asOf))
    if (size === null) throw notFound(`The audit log has no checkpoint of ${asOf} or earlier.`)
    if (size > log.size) throw notYetCheckpointed(`The log has ${log.size} leaves at its checkpoint.`)
    void reply.header('mayfly-as-of', String(size))
    return { log, size }
  }

  private async sizeAsOf(log: CheckpointedLog, moment: number | Date): Promise<number | null> {
    if (typeof moment === 'number') return moment
    const size = await this.logs.read((audit) => audit.sizeAt(log.id, moment))
    // A checkpoint may have been taken since the log was read.
    return size === null ? null : Math.min(size, log.size)
  }

  /**
   * The offset after the last of the events that the leaves have; 0 if they have none. A log has the leaves of a partition in
   * the order of their offsets.
   */
  private endOf({ log, size }: Leaves, read: Read<Listed>): Promise<number> {
    return this.logs.read(async (audit) => {
      const [last] = await read({ order: 'desc', from: 0, to: Number.MAX_SAFE_INTEGER, limit: 1 })
      let [from, to] = [0, last === undefined ? 0 : last.offset + 1]
      while (from < to) {
        const middle = Math.floor((from + to) / 2)
        const [event] = await read({ order: 'asc', from: middle, to, limit: 1 })
        const index = event === undefined ? null : await audit.leafOf(log.id, event.id)
        if (event !== undefined && index !== null && index < size) from = event.offset + 1
        else to = middle
      }
      return from
    })
  }

  /** Events from the event log, by their offsets. Throws history-expired if it no longer has one. */
  private async recorded<Event extends { type: string }>(
    codec: EventCodec<Event>,
    partition: Partition,
    entries: readonly Listed[],
    { request }: FastifyReply,
  ): Promise<ReadonlyMap<number, Event>> {
    if (entries.length > MAX_RECORDS) throw tooLong(`more than ${MAX_RECORDS} changes`)
    const positions = entries.map(({ offset }) => ({ ...partition, offset }))
    const events = new Map<number, Event>()
    // Mail between them may be large.
    for await (const record of recordsAt(this.engine.log, positions, 0)) {
      if (record === null) throw new Problem('history-expired', { detail: EXPIRED })
      const decoded = codec.decode(record)
      if (decoded.kind !== 'event') throw new Error(`an event at ${record.offset} can't be decoded`)
      events.set(record.offset, decoded.recorded.event)
      await nextTurn(request)
    }
    return events
  }

  private historyOf(inboxId: InboxId): Read<HistoryEntry> {
    return (range) => this.views.inboxes.history({ inboxId, ...range })
  }
}

/** All events that are wanted, oldest first. Throws invalid-request if there are too many. */
async function readAll<Entry extends Listed>(
  read: Read<Entry>,
  { request }: FastifyReply,
  isWanted: (entry: Entry) => boolean = () => true,
): Promise<Entry[]> {
  const found: Entry[] = []
  let page: Entry[]
  let from = 0
  do {
    page = await read({ order: 'asc', from, to: Number.MAX_SAFE_INTEGER, limit: EVENTS_AT_ONCE })
    found.push(...page.filter(isWanted))
    if (found.length > MAX_EVENTS) throw tooLong(`more than ${MAX_EVENTS} events`)
    from = (page.at(-1)?.offset ?? 0) + 1
    await nextTurn(request)
  } while (page.length === EVENTS_AT_ONCE)
  return found
}

function tooLong(what: string): Problem {
  const detail = `The state follows from ${what}: export the audit log and replay it instead`
  return invalid({ detail, parameter: 'as_of' })
}
