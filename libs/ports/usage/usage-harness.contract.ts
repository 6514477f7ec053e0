import { idFromBytes, type AccountId, type InboxId, type KeyId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import { encodeRows, inboxRow, usageRows, type UsageRow } from './usage-rows.js'
import type { UsageQueries, UsageSink } from './usage-store.js'

/** The tables that a suite runs against. They are its own, and empty at first. */
export interface UsageHarness {
  sink: UsageSink
  queries: UsageQueries
  close(): Promise<void>
}

export type OpenUsage = () => Promise<UsageHarness>

const DAY_MS = 86_400_000

export const ACCOUNT: AccountId = idFromBytes('acc', Buffer.alloc(16, 1))
export const OTHER_ACCOUNT: AccountId = idFromBytes('acc', Buffer.alloc(16, 2))
export const KEY: KeyId = idFromBytes('key', Buffer.alloc(16, 1))
export const SECOND_KEY: KeyId = idFromBytes('key', Buffer.alloc(16, 2))
/** Of yesterday, because events older than 90 days could be removed at any moment. */
export const NOON = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS / 2)

export function after(ms: number): Date {
  return new Date(NOON.getTime() + ms)
}

export function inboxAt(n: number): InboxId {
  return idFromBytes('inb', Buffer.alloc(16, n))
}

export interface Tenant {
  accountId: AccountId
  environment: string
  keyId: KeyId
}

export const TENANT: Tenant = { accountId: ACCOUNT, environment: 'staging', keyId: KEY }

let offset = 0
const id = idFromBytes('evt', Buffer.alloc(16, 1))

/** Each row has a position of its own. */
function nextPosition(): { partition: number; offset: number } {
  offset += 1
  return { partition: 0, offset }
}

export function served(
  at: Date,
  facts: { ms?: number; status?: number; labels?: Record<string, string>; route?: string } = {},
  { accountId, environment, keyId }: Tenant = TENANT,
): UsageRow {
  const { ms = 10, status = 200, labels = {}, route = '/v1/inboxes' } = facts
  return rowOf({ accountId, environment }, at, {
    type: 'ApiRequestServed',
    count: 1,
    ...{ keyId, method: 'GET', route, status, isRefused: status === 429, durationMs: ms },
    ...{ requestBytes: 0, responseBytes: 100, inboxId: null, labels, servedAt: at },
  })
}

type MailOutcome = 'accepted' | 'refused' | 'shown' | 'read'

export interface MailFacts {
  inboxId?: InboxId
  message?: number
  labels?: Record<string, string>
  /** Since the mail was received. */
  ms?: number
}

export function mailed(
  outcome: MailOutcome,
  at: Date,
  facts: MailFacts = {},
  tenant: Tenant = TENANT,
): UsageRow {
  const { inboxId = inboxAt(1), message = 1, labels = {}, ms = 0 } = facts
  const { accountId, environment, keyId } = tenant
  const messageId = idFromBytes('msg', Buffer.alloc(16, message))
  const about = { keyId, labels }
  const receivedAt = new Date(at.getTime() - ms)
  const events: Record<MailOutcome, UsageEvent> = {
    accepted: { type: 'MailAccepted', ...about, ms: [ms], at },
    refused: { type: 'MailRefused', ...about, inboxId, reason: 'inbox-full', code: 552, refusedAt: at },
    shown: { type: 'MessageShown', ...about, ms: [ms], at },
    read: { type: 'MessageRead', ...about, inboxId, messageId, receivedAt, readAt: at },
  }
  return rowOf({ accountId, environment }, at, events[outcome])
}

function rowOf(tenant: Omit<Tenant, 'keyId'>, time: Date, event: UsageEvent): UsageRow {
  const recorded = { id, time, source: '/mayfly/api', ...tenant, keyId: event.keyId, event }
  const [row] = usageRows(recorded, nextPosition())
  if (row === undefined) throw new TypeError('the event has no row')
  return row
}

export function created(
  at: Date,
  inboxId: InboxId,
  labels: Record<string, string> = {},
  tenant: Tenant = TENANT,
): UsageRow {
  const { accountId, environment, keyId } = tenant
  const event: InboxEvent = {
    ...{
      type: 'InboxCreated',
      inboxId,
      ...tenant,
      address: 'a@mayfly.test' as Address,
      duration: '1h',
      labels,
    },
    ...{
      maxMessages: 10,
      isProtected: false,
      createdAt: at,
      expiresAt: at,
      faults: null,
      cause: null,
      sealed: Buffer.alloc(0),
    },
  }
  return inboxRow(
    { id, time: at, source: '/mayfly/api', accountId, environment, keyId, event },
    nextPosition(),
  )
}

export function received(
  at: Date,
  facts: Omit<MailFacts, 'ms'> & { size?: number; fingerprint?: string | null } = {},
  { accountId, environment, keyId }: Tenant = TENANT,
): UsageRow {
  const { inboxId = inboxAt(1), message = 1, labels = {}, size = 1_000, fingerprint = null } = facts
  const event: InboxEvent = {
    ...{ type: 'MessageReceived', inboxId, messageId: idFromBytes('msg', Buffer.alloc(16, message)) },
    ...{
      receivedAt: at,
      size,
      digest: '',
      sealed: Buffer.alloc(0),
      duplicateOf: null,
      fingerprint,
      inbox: { keyId, labels },
    },
  }
  return inboxRow(
    { id, time: at, source: '/mayfly/smtp', accountId, environment, keyId: null, event },
    nextPosition(),
  )
}

/** Writes a batch with a range that no other batch has. */
export async function write(sink: UsageSink, rows: readonly UsageRow[]): Promise<void> {
  const first = offset
  offset += 1
  await sink.write({
    logId: 'log',
    topic: 'usage-events',
    ranges: [{ partition: 0, first, end: offset }],
    rows: encodeRows(rows),
  })
}
