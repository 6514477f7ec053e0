import type { Recorded } from '#libs/ports/event-log/cloud-event.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { idFromBytes, type AccountId, type Id, type InboxId, type KeyId } from '#libs/domain/ids/typeid.js'
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import { encodeRows, inboxRow, usageRows, webhookRow, type UsageRow } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch } from '#libs/ports/usage/usage-store.js'
import type { WebhookEvent } from '#libs/domain/webhook/events.js'
import { seededRandom } from './seeded-random.js'

/*
 * Usage rows as analytics would write them for the test suites of several accounts: inboxes are created; mail is
 * accepted, shown, read and refused; webhooks are delivered. Deterministic except for the time.
 */

export interface GeneratedUsageOptions {
  accounts: number
  /** Keys of each account, in two environments. */
  keys: number
  partitions: number
  /** Share of all requests, mails and delivery attempts that fail, from 0 to 1. */
  refusedRequests: number
  /** Of the others, answered 500. */
  failedRequests: number
  refusedMails: number
  failedAttempts: number
}

const ORDINARY: GeneratedUsageOptions = {
  accounts: 2,
  keys: 4,
  partitions: 2,
  refusedRequests: 0.02,
  failedRequests: 0,
  refusedMails: 0.02,
  failedAttempts: 0.1,
}

type Topic = 'usage-events' | 'inbox-events' | 'webhook-events'

/** An inbox and its owner. */
interface OwnedInbox {
  accountId: AccountId
  environment: string
  keyId: KeyId
  inboxId: InboxId
  labels: Record<string, string>
  partition: number
}

const MAILS = 3
const READS = ['/v1/inboxes/{id}', '/v1/inboxes/{id}/messages', '/v1/inboxes/{id}/messages/wait']
const REASONS = [
  { reason: 'inbox-full', code: 552 },
  { reason: 'message-too-large', code: 552 },
  { reason: 'behind', code: 451 },
]
const SUITES = ['sign-up', 'reset', 'invoice', 'invite', 'digest']

export class GeneratedUsage {
  private readonly options: GeneratedUsageOptions
  private readonly rows: Record<Topic, UsageRow[]> = {
    'usage-events': [],
    'inbox-events': [],
    'webhook-events': [],
  }
  /** End offsets by topic and partition: of the last batch, and of the next one so far. */
  private readonly ends: Record<Topic, { batched: number[]; next: number[] }>
  private readonly due = { refusedRequests: 0, failedRequests: 0, refusedMails: 0, failedAttempts: 0 }
  private inboxes = 0
  /** A number from 0 up to 1. */
  private readonly random = seededRandom(1)

  constructor(options: Partial<GeneratedUsageOptions> = {}) {
    this.options = { ...ORDINARY, ...options }
    const none = () => Array.from({ length: this.options.partitions }, () => 0)
    const ends = () => ({ batched: none(), next: none() })
    this.ends = { 'usage-events': ends(), 'inbox-events': ends(), 'webhook-events': ends() }
  }

  /** Spreads inboxes evenly over a time span. Returns one batch per topic, which continues after the previous one. */
  generate(from: Date, to: Date, inboxes: number): UsageBatch[] {
    const spanMs = to.getTime() - from.getTime()
    for (let n = 1; n <= inboxes; n++) this.inbox(new Date(from.getTime() + (spanMs * n) / inboxes))
    return (['usage-events', 'inbox-events', 'webhook-events'] as const).map((topic) => {
      const { batched, next } = this.ends[topic]
      const ranges = next.map((end, partition) => ({ partition, first: batched[partition] ?? 0, end }))
      this.ends[topic].batched = [...next]
      return { logId: 'generated', topic, ranges, rows: encodeRows(this.rows[topic].splice(0)) }
    })
  }

  private inbox(at: Date): void {
    const { accounts, keys, partitions } = this.options
    const number = this.inboxes++
    const key = number % (accounts * keys)
    const subject: OwnedInbox = {
      accountId: idFromBytes('acc', Buffer.alloc(16, 1 + (key % accounts))),
      environment: key < accounts * (keys / 2) ? 'staging' : 'production',
      keyId: idFromBytes('key', Buffer.alloc(16).fill(`key ${key}`)),
      inboxId: this.id('inb', at),
      labels: { run: String(Math.floor(number / 100)), suite: SUITES[number % SUITES.length] ?? '' },
      partition: number % partitions,
    }
    this.request(subject, at, 'POST', '/v1/inboxes', 201)
    this.inboxEvent(subject, at, {
      ...{ type: 'InboxCreated', ...subject, address: 'someone@mayfly.test' as Address, duration: '1h' },
      ...{
        maxMessages: 100,
        isProtected: false,
        createdAt: at,
        expiresAt: at,
        faults: null,
        cause: null,
        sealed: Buffer.alloc(0),
      },
    })
    for (let n = 0; n < MAILS; n++) this.mail(subject, at)
    const { inboxId, keyId } = subject
    this.request(subject, at, 'DELETE', '/v1/inboxes/{id}', 200)
    const inbox = { keyId, labels: subject.labels }
    this.inboxEvent(subject, at, { type: 'InboxDeleted', inboxId, keyId, deletedAt: at, inbox })
  }

  private mail(subject: OwnedInbox, end: Date): void {
    const at = this.before(end)
    const { inboxId, keyId, labels } = subject
    const about = { keyId, inboxId, labels }
    if (this.shouldFail('refusedMails')) {
      const why = REASONS[Math.floor(this.random() * REASONS.length)] ?? { reason: '', code: 0 }
      this.usageEvent(subject, at, { type: 'MailRefused', ...about, ...why, refusedAt: at })
      return
    }
    const messageId = this.id('msg', at)
    const size = 1_000 + Math.floor(this.random() ** 3 * 80_000)
    const fingerprint = Math.floor(this.random() * 2 ** 52).toString(16)
    this.inboxEvent(subject, at, {
      ...{ type: 'MessageReceived', inboxId, messageId, receivedAt: at, size, digest: '' },
      ...{ sealed: Buffer.alloc(0), duplicateOf: null, fingerprint, inbox: { keyId, labels } },
    })
    const shownMs = this.ms(9)
    const shownAt = new Date(at.getTime() + shownMs)
    this.usageEvent(subject, at, { type: 'MailAccepted', keyId, labels, ms: [this.ms(3)], at })
    this.usageEvent(subject, at, { type: 'MessageShown', keyId, labels, ms: [shownMs], at: shownAt })
    for (const route of READS) this.request(subject, at, 'GET', route, this.random() < 0.05 ? 404 : 200)
    const readAt = new Date(shownAt.getTime() + this.ms(60))
    this.usageEvent(subject, at, { type: 'MessageRead', ...about, messageId, receivedAt: at, readAt })
    this.delivery(subject, at, messageId)
  }

  private delivery(subject: OwnedInbox, at: Date, messageId: Id<'msg'>): void {
    const { accountId, environment, inboxId } = subject
    const webhookId = idFromBytes('whk', Buffer.alloc(16).fill(subject.keyId))
    const deliveryId = this.id('dlv', at)
    const notification = { type: 'message.received' as const, inboxId, messageId, occurredAt: at }
    this.webhookEvent(subject, at, {
      ...{ type: 'DeliveryRequested', webhookId, deliveryId, accountId, environment, notification },
      ...{ replayId: null, requestedAt: at },
    })
    const attempt = { webhookId, deliveryId, attempt: 1, attemptedAt: at, answer: null }
    const latencyMs = Math.ceil(this.ms(120))
    if (!this.shouldFail('failedAttempts')) {
      this.webhookEvent(subject, at, { type: 'DeliverySucceeded', ...attempt, latencyMs, status: 204 })
      return
    }
    const why =
      this.random() < 0.5 ? { status: 503, error: 'answered 503' } : { status: null, error: 'timeout' }
    this.webhookEvent(subject, at, {
      type: 'DeliveryFailed',
      ...attempt,
      ...why,
      latencyMs,
      nextAttemptAt: null,
    })
    const abandoned = { type: 'DeliveryAbandoned', webhookId, deliveryId, reason: 'inbox-ended' } as const
    this.webhookEvent(subject, at, { ...abandoned, abandonedAt: at })
  }

  private request(subject: OwnedInbox, end: Date, method: string, route: string, usualStatus: number): void {
    const at = this.before(end)
    const { keyId, inboxId, labels } = subject
    const isRefused = this.shouldFail('refusedRequests')
    const hasFailed = !isRefused && this.shouldFail('failedRequests')
    const [requestBytes, responseBytes] = [
      method === 'POST' ? 80 : 0,
      300 + Math.floor(this.random() * 9_000),
    ]
    this.usageEvent(subject, at, {
      ...{
        type: 'ApiRequestServed',
        count: 1,
        keyId,
        method,
        route,
        status: isRefused ? 429 : hasFailed ? 500 : usualStatus,
        isRefused,
      },
      ...{ durationMs: this.ms(6), requestBytes, responseBytes, inboxId, labels, servedAt: at },
    })
  }

  private usageEvent(subject: OwnedInbox, time: Date, event: UsageEvent): void {
    const position = this.nextPosition('usage-events', subject)
    this.rows['usage-events'].push(...usageRows(this.recorded(subject, time, event), position))
  }

  private inboxEvent(subject: OwnedInbox, time: Date, event: InboxEvent): void {
    const position = this.nextPosition('inbox-events', subject)
    this.rows['inbox-events'].push(inboxRow(this.recorded(subject, time, event), position))
  }

  private webhookEvent(subject: OwnedInbox, time: Date, event: WebhookEvent): void {
    const position = this.nextPosition('webhook-events', subject)
    this.rows['webhook-events'].push(webhookRow(this.recorded(subject, time, event), position))
  }

  private recorded<Event>(subject: OwnedInbox, time: Date, event: Event): Recorded<Event> {
    const { accountId, environment, keyId } = subject
    return { id: EVENT_ID, source: '/mayfly/generated', time, accountId, environment, keyId, event }
  }

  private nextPosition(topic: Topic, { partition }: OwnedInbox): { partition: number; offset: number } {
    const { next } = this.ends[topic]
    const offset = next[partition] ?? 0
    next[partition] = offset + 1
    return { partition, offset }
  }

  /** Spreads failures evenly over all calls. */
  private shouldFail(what: keyof GeneratedUsage['due']): boolean {
    this.due[what] += this.options[what]
    if (this.due[what] < 1) return false
    this.due[what] -= 1
    return true
  }

  /** Mostly around `usual`, with a long tail. */
  private ms(usual: number): number {
    return usual * (0.5 + this.random() + this.random() ** 20 * 20)
  }

  /** All events of an inbox are within seconds. */
  private before(end: Date): Date {
    return new Date(end.getTime() - Math.floor(this.random() * 3_000))
  }

  /** Like a UUIDv7: the time, then random bytes. */
  private id<Prefix extends string>(prefix: Prefix, at: Date): Id<Prefix> {
    const bytes = Buffer.alloc(16)
    bytes.writeUIntBE(at.getTime(), 0, 6)
    for (let index = 6; index < 16; index++) bytes[index] = Math.floor(this.random() * 256)
    return idFromBytes(prefix, bytes)
  }
}

const EVENT_ID = idFromBytes('evt', Buffer.alloc(16, 1))
