import type { Logger } from 'pino'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { decide } from '#libs/domain/webhook/decide.js'
import type { WebhookDisabled, DeliveryEvent } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Attribution, Recorder } from '#libs/ports/event-log/cloud-event.js'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import type { DeliveryQueries } from '#libs/ports/read-model/queries.js'
import { largeCache } from '#libs/runtime/large-cache.js'
import { pauseUntilAborted } from '#libs/runtime/timing.js'

export interface OutcomesOptions {
  recorder: Pick<Recorder, 'record'>
  deliveries: Pick<DeliveryQueries, 'failingSince'>
  now: () => Date
  logger: Logger
}

/** The resource is gone: send it no more requests (RFC 9110, section 15.5.11). */
export const GONE = 410

const RETRY_MS = 1_000
/** A webhook is disabled once every attempt has failed for this long. */
const FAILING_FOR_MS = 5 * 86_400_000
/** How many webhooks that were disabled are remembered, until the views show it. */
const MAX_REMEMBERED = 10_000

/**
 * Records the outcomes of attempts, and disables webhooks whose endpoint is gone or has failed for days. While the log
 * is unavailable, outcomes are kept in memory: losing one would send the delivery twice.
 */
export class Outcomes {
  private readonly stopping = new AbortController()
  private countUnrecorded = 0
  private readonly disabledAtMs = largeCache<WebhookId, number>(MAX_REMEMBERED)

  constructor(private readonly options: OutcomesOptions) {}

  /** Whether an outcome can't be recorded now. Then no further attempts should start. */
  get isLogUnavailable(): boolean {
    return this.countUnrecorded > 0
  }

  /**
   * Resolves once the event is on the log, and retries while the log is unavailable. Rejects if the log refuses the
   * event, or is still unavailable when `giveUp` is called.
   */
  async record(event: DeliveryEvent, attribution: Attribution): Promise<void> {
    const { recorder, logger } = this.options
    let hasFailed = false
    try {
      for (;;) {
        const error = await recorder.record(event, attribution).then(() => null, unavailableOrThrow)
        if (error === null) return
        if (this.stopping.signal.aborted) throw error
        if (!hasFailed) {
          hasFailed = true
          this.countUnrecorded += 1
          const { deliveryId } = event
          logger.error({ err: error, deliveryId }, 'an outcome is kept until the log is available')
        }
        await pauseUntilAborted(RETRY_MS, this.stopping.signal)
      }
    } finally {
      if (hasFailed) this.countUnrecorded -= 1
    }
  }

  /** Stops retrying: outcomes that are not recorded yet are lost, and their attempts are repeated. */
  giveUp(): void {
    this.stopping.abort()
  }

  /**
   * Disables the webhook of a failed attempt if its endpoint is gone or has failed for days. Resolves with the reason,
   * once that is on the log, or with null if the webhook stays enabled or was disabled before.
   */
  async disableAfterFailure(
    webhook: Webhook,
    status: number | null,
  ): Promise<WebhookDisabled['reason'] | null> {
    const reason = status === GONE ? 'gone' : (await this.hasFailedForDays(webhook)) ? 'failing' : null
    if (reason === null || this.wasJustDisabled(webhook)) return null
    const { recorder, now } = this.options
    const { accountId, environment, id: webhookId } = webhook
    const command = { type: 'DisableWebhook', accountId, webhookId, reason, now: now() } as const
    const { events } = decide(webhook, command)
    for (const event of events) {
      await recorder.record(event, { accountId, environment, keyId: null })
    }
    this.disabledAtMs.set(webhookId, command.now.getTime())
    return reason
  }

  private async hasFailedForDays({ id, activeSince }: Webhook): Promise<boolean> {
    const { deliveries, now } = this.options
    const failingSince = await deliveries.failingSince(id)
    if (failingSince === null) return false
    const sinceMs = Math.max(failingSince.getTime(), activeSince.getTime())
    return now().getTime() - sinceMs >= FAILING_FOR_MS
  }

  /** Whether this process has disabled the webhook since its owner last enabled it. */
  private wasJustDisabled({ id, activeSince }: Webhook): boolean {
    return (this.disabledAtMs.get(id) ?? -Infinity) >= activeSince.getTime()
  }
}

function unavailableOrThrow(error: unknown): LogUnavailableError {
  if (error instanceof LogUnavailableError) return error
  throw error
}
