import type { Logger } from 'pino'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import type { Attribution, Recorder } from '#libs/ports/event-log/cloud-event.js'
import { pauseUntilAborted } from '#libs/runtime/timing/waiting.js'
import type { DeliveryEvent } from '#libs/domain/webhook/webhook-events.js'
import type { ProjectionStore } from '#libs/ports/read-model/projection-store.js'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { decide } from '#libs/domain/webhook/decide.js'
import type { WebhookDisabled } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'

export interface OutcomesOptions {
  recorder: Pick<Recorder, 'record'>
  logger: Logger
}

const AGAIN_AFTER_MS = 1_000

/** Tells the log what became of attempts. What is known is kept while the log is out of reach: to post again is worse. */
export class Outcomes {
  private readonly stopping = new AbortController()
  private countUntold = 0

  constructor(private readonly options: OutcomesOptions) {}

  /** Whether an outcome can't be told: what else were attempted would have the same fate. */
  get isLogAway(): boolean {
    return this.countUntold > 0
  }

  /** Resolves once the log has been told. Rejects if it could not be until `giveUp`, and never can be. */
  async record(event: DeliveryEvent, attribution: Attribution): Promise<void> {
    const { recorder, logger } = this.options
    let isAway = false
    try {
      for (;;) {
        const fault = await recorder.record(event, attribution).then(() => null, faultOf)
        if (fault === null) return
        if (this.stopping.signal.aborted) throw fault
        if (!isAway) {
          isAway = true
          this.countUntold += 1
          logger.error(
            { err: fault, deliveryId: event.deliveryId },
            'an outcome is kept until the log is back',
          )
        }
        await pauseUntilAborted(AGAIN_AFTER_MS, this.stopping.signal)
      }
    } finally {
      if (isAway) this.countUntold -= 1
    }
  }

  /** What the log still can't be told is unknown from now on. */
  giveUp(): void {
    this.stopping.abort()
  }
}

function faultOf(error: unknown): LogUnavailableError {
  if (error instanceof LogUnavailableError) return error
  throw error
}

/** No more is to be sent there (RFC 9110, section 15.5.11). */
export const GONE = 410

/** Nothing but failures for so long disables a webhook. */
const FAILING_FOR_MS = 5 * 86_400_000
/** For so long the views may not show yet that a webhook was disabled. */
const SHOWN_AFTER_MS = 60_000

export interface DisablingOptions {
  store: Pick<ProjectionStore, 'webhookHealth'>
  recorder: Pick<Recorder, 'record'>
  now: () => Date
}

/** Disables webhooks for how their endpoints answer. */
export class Disabling {
  private readonly disabledAtMs = new Map<WebhookId, number>()

  constructor(private readonly options: DisablingOptions) {}

  /** Resolves, once the log has been told, with why: where the endpoint is gone, or has failed for days; else null. */
  async afterFailure(webhook: Webhook, status: number | null): Promise<WebhookDisabled['reason'] | null> {
    const reason = status === GONE ? 'gone' : (await this.hasFailedForDays(webhook)) ? 'failing' : null
    if (reason === null || this.isJustDisabled(webhook)) return null
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
    const { store, now } = this.options
    const [health] = await store.webhookHealth([id])
    const failingSince = health?.failingSince ?? null
    if (failingSince === null) return false
    const sinceMs = Math.max(failingSince.getTime(), activeSince.getTime())
    return now().getTime() - sinceMs >= FAILING_FOR_MS
  }

  /** One that its owner has enabled since is disabled again. */
  private isJustDisabled({ id, activeSince }: Webhook): boolean {
    const nowMs = this.options.now().getTime()
    for (const [other, atMs] of this.disabledAtMs) {
      if (atMs > nowMs - SHOWN_AFTER_MS) break
      this.disabledAtMs.delete(other)
    }
    return (this.disabledAtMs.get(id) ?? -Infinity) >= activeSince.getTime()
  }
}
