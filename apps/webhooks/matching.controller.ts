import { Controller, Inject, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import { notificationOf, type DomainChecked } from '#libs/domain/account/domain.js'
import { keyState } from '#libs/domain/account/key-expiry.js'
import type { ApiKeyExpiring } from '#libs/domain/account/events.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { DomainNotification, KeyNotification } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { accountEventCodec, inboxEventCodec, type Recorder } from '#libs/ports/event-log/cloud-event.js'
import type {
  BatchOutcome,
  LogLayout,
  LogReader,
  PartitionRange,
  RecordBatch,
} from '#libs/ports/event-log/event-log.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { WebhookedInbox } from '#libs/ports/read-model/account-views.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import type { AccountQueries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import { PORTS, RethrowErrors } from '#libs/role/role-consumers.js'
import { SharedRun } from '#libs/runtime/timing.js'
import { candidatesFor, firstReplayIdOf, notificationsIn, type DeliveryRequests } from './matching.js'
import type { QuotaNotices } from './quota-notices.js'
import type { WebhookMetrics } from './webhook-metrics.js'

export interface MatchingPorts {
  log: LogLayout & LogReader
  webhooks: Pick<WebhookQueries, 'webhook' | 'webhooksFor'>
  accounts: Pick<AccountQueries, 'domain' | 'key'>
  views: Pick<ConsistentViews, 'readLatest' | 'waitUntilVisible' | 'waitUntilAllVisible'>
  requests: DeliveryRequests
  quotas: Pick<QuotaNotices, 'request'>
  recorder: Pick<Recorder, 'record'>
  metrics: WebhookMetrics
  now: () => Date
}

const INBOX_EVENTS = 'inbox-events'
/** The events that use quotas. */
const USING = new Set<InboxEvent['type']>(['InboxCreated', 'MessageReceived'])

/**
 * Requests a delivery for each event and each webhook that wants the event. The group's offset is committed only
 * afterwards, so if the process is killed, no event is missed.
 */
@Controller()
@UseFilters(RethrowErrors)
export class MatchingController {
  /** The inboxes that the next lookup is for. */
  private inboxes: WebhookedInbox[] = []
  /** Batches of different partitions arrive together, and share a lookup. */
  private readonly lookup = new SharedRun(() => this.lookUpWebhooks(), 0)

  constructor(@Inject(PORTS) private readonly ports: MatchingPorts) {}

  @EventPattern(INBOX_EVENTS)
  async match(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, views, requests, quotas, metrics } = this.ports
    const { topic, partition } = batch
    // The projector writes records that can't be decoded to the dead letters.
    const { events, outcome } = decodeBatch(inboxEventCodec, batch, log.partitionCount(topic))
    const last = events.at(-1)
    if (last === undefined) return outcome
    // The body of a delivery, whether its inbox has a password, and what is used of quotas are read from the views.
    const shown = () => views.waitUntilVisible({ topic, partition, offset: last.offset })
    const notifications = notificationsIn(events, partition)
    if (notifications.length > 0) {
      this.inboxes.push(...notifications.map(({ inbox }) => inbox))
      const candidates = candidatesFor(notifications, await this.lookup.get())
      if (candidates.length > 0) {
        await shown()
        metrics.requested.inc(await requests.requestAll(notifications, candidates))
      }
    }
    const users = events.filter(({ recorded: { event } }) => USING.has(event.type))
    const accountIds = users.map(({ recorded }) => recorded.accountId)
    if (accountIds.length > 0) metrics.requested.inc(await quotas.request(accountIds, shown))
    return outcome
  }

  private lookUpWebhooks(): Promise<Webhook[]> {
    const { views, webhooks } = this.ports
    const inboxes = this.inboxes
    this.inboxes = []
    // A webhook that the views lack would never get the events of these inboxes.
    return views.readLatest('account-events', () => webhooks.webhooksFor(inboxes))
  }

  /**
   * Requests for each new webhook the deliveries that it has missed, and for the webhooks of an environment those about
   * its domains and keys, and the quotas of its account, which these events may have changed or used.
   */
  @EventPattern('account-events')
  async follow(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, webhooks, views, quotas, metrics } = this.ports
    const { topic, partition } = batch
    const { events, outcome } = decodeBatch(accountEventCodec, batch, log.partitionCount(topic))
    for (const { offset, recorded } of events) {
      const { event } = recorded
      const shown = () => views.waitUntilVisible({ topic, partition, offset })
      if (event.type === 'DomainChecked') await shown().then(() => this.requestOfDomain(event))
      else if (event.type === 'ApiKeyExpiring') await shown().then(() => this.requestOfKey(event))
      else if (event.type === 'WebhookRegistered') {
        await shown()
        const webhook = await webhooks.webhook(event.webhookId)
        if (webhook !== null) await this.requestMissed(webhook)
      }
    }
    const last = events.at(-1)
    if (last === undefined) return outcome
    const accountIds = events.map(({ recorded }) => recorded.accountId)
    const shown = () => views.waitUntilVisible({ topic, partition, offset: last.offset })
    metrics.requested.inc(await quotas.request(accountIds, shown))
    return outcome
  }

  /** Later changes of the domain may be in the views already. */
  private async requestOfDomain(event: DomainChecked): Promise<void> {
    const { domainId, name, checkedAt: occurredAt } = event
    const domain = await this.ports.accounts.domain(domainId)
    const type = domain === null ? null : notificationOf(domain, event)
    if (domain === null || type === null) return
    await this.requestOfEnvironment(domain, {
      ...{ type, domainId, name, inboxId: null, messageId: null, occurredAt },
    })
  }

  /** The key may have been revoked meanwhile, or its time may have been changed. */
  private async requestOfKey(event: ApiKeyExpiring): Promise<void> {
    const { keyId, expiresAt, daysLeft, notifiedAt: occurredAt } = event
    const key = await this.ports.accounts.key(keyId)
    if (key === null || keyState(key, this.ports.now()) !== 'active') return
    if (key.expiresAt?.getTime() !== expiresAt.getTime()) return
    const about = { keyId, name: key.name, expiresAt, daysLeft, inboxId: null, messageId: null }
    await this.requestOfEnvironment(key, { type: 'key.expiring', ...about, occurredAt })
  }

  private async requestOfEnvironment(
    owner: MailOwner,
    notification: DomainNotification | KeyNotification,
  ): Promise<void> {
    const { webhooks, requests, metrics } = this.ports
    const { type, occurredAt } = notification
    const candidates = await webhooks.webhooksFor([owner])
    const wanted = candidates.filter(
      ({ events, createdAt }) => events.includes(type) && createdAt <= occurredAt,
    )
    await requests.append(wanted.map((webhook) => ({ webhook, notification })))
    metrics.requested.inc(wanted.length)
  }

  /**
   * Requests what `match` misses: the events between the registration and the moment when `match` finds the webhook in
   * the views, and, if the webhook wants them, the messages that its inboxes held before. A delivery that is requested
   * twice is made once. Rejects if the views are behind or the log is unavailable.
   */
  private async requestMissed(webhook: Webhook): Promise<void> {
    const { log, views } = this.ports
    const { partitions } = await log.topology(INBOX_EVENTS)
    const missed = partitions.flatMap(({ partition, end }) => {
      const since = webhook.positions.find((position) => position.partition === partition)
      return since === undefined
        ? []
        : [{ topic: INBOX_EVENTS, partition, first: since.offset, end } as const]
    })
    // The body of a delivery is read from the views.
    await views.waitUntilAllVisible(missed)
    for (const range of missed) await this.requestRange(webhook, range)
    if (webhook.startFrom !== 'now') await this.requestHeld(webhook)
  }

  private async requestRange(webhook: Webhook, range: PartitionRange): Promise<void> {
    const { log, requests } = this.ports
    const { topic, partition } = range
    if (range.first >= range.end) return
    for await (const records of log.read(range)) {
      const batch = { topic, partition, from: range.first, next: range.end, records }
      const { events } = decodeBatch(inboxEventCodec, batch, log.partitionCount(topic))
      await requests.requestAll(notificationsIn(events, partition), [webhook])
    }
  }

  /** Messages from before the registration are delivered by a replay, because there is no limit to their number. */
  private async requestHeld({ id: webhookId, accountId, environment, startFrom }: Webhook): Promise<void> {
    const { recorder, now } = this.ports
    const replayId = firstReplayIdOf(webhookId)
    const since = startFrom instanceof Date ? startFrom : null
    const selection = { kind: 'existing-mail', since } as const
    const ids = { webhookId, replayId, accountId, environment }
    await recorder.record(
      { type: 'ReplayRequested', ...ids, selection, requestedAt: now() },
      { accountId, environment, keyId: null },
    )
  }
}
