import type { Logger } from 'pino'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { SERVED_TOPICS } from '#libs/ports/event-log/topics.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { ReplayQueries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import { pauseUntilAborted } from '#libs/runtime/timing.js'
import type { DeliveryRequests } from './matching.js'
import { EMPTY_PAGE, type ReplayPages } from './replay-pages.js'
import type { WebhookMetrics } from './webhook-metrics.js'

export interface ReplayRunnerOptions {
  replays: ReplayQueries
  webhooks: Pick<WebhookQueries, 'webhook'>
  pages: Pick<ReplayPages, 'page'>
  requests: Pick<DeliveryRequests, 'append'>
  recorder: Pick<Recorder, 'record'>
  views: Pick<ConsistentViews, 'requireComplete' | 'waitUntilVisible'>
  /** How many deliveries this process requests in a second, for all replays together. */
  perSecond: number
  now: () => Date
  logger: Logger
  metrics: WebhookMetrics
}

/** The time in which a step must be on the log and in the views; otherwise another process repeats it. */
const LEASE_MS = 15_000
/** Deliveries of one replay that wait for their first attempt: new events of the webhook wait behind them. */
const MAX_WAITING = 50
const WHILE_WAITING_MS = 200
const WHILE_DISABLED_MS = 5_000
const AFTER_ERROR_MS = 1_000

/**
 * Requests the deliveries of replays in steps, one replay after the other. If a process is killed within a step, the
 * step is repeated with the same delivery ids.
 */
export class ReplayRunner {
  constructor(private readonly options: ReplayRunnerOptions) {}

  /** Runs a step of each replay that is due. After an abort, ends with the current step. */
  async runAll(signal: AbortSignal): Promise<void> {
    const { replays, now, perSecond } = this.options
    while (!signal.aborted) {
      const replay = await replays.claimReplay({ now: now(), leaseMs: LEASE_MS })
      if (replay === null) return
      const requested = await this.step(replay)
      await pauseUntilAborted((requested * 1_000) / perSecond, signal)
    }
  }

  /** Returns how many deliveries were requested. */
  private async step(replay: Replay): Promise<number> {
    const { replays, now, logger } = this.options
    const key = { webhookId: replay.webhookId, replayId: replay.id }
    const { requested, nextInMs } = await this.advance(replay).catch((error: unknown) => {
      logger.error({ err: error, ...key }, 'a step of a replay failed: retrying')
      return { requested: 0, nextInMs: AFTER_ERROR_MS }
    })
    await replays.releaseReplay(replay, new Date(now().getTime() + nextInMs))
    return requested
  }

  private async advance(replay: Replay): Promise<{ requested: number; nextInMs: number }> {
    const { requests, recorder, views, metrics, now } = this.options
    const webhook = await this.options.webhooks.webhook(replay.webhookId)
    if (webhook?.state === 'disabled') return { requested: 0, nextInMs: WHILE_DISABLED_MS }
    const max = Math.min(MAX_WAITING - (replay.requested - replay.begun), this.options.perSecond)
    if (max <= 0) return { requested: 0, nextInMs: WHILE_WAITING_MS }
    // If the webhook has been removed, the replay ends.
    const { notifications, next } =
      webhook === null ? EMPTY_PAGE : await this.options.pages.page(webhook, replay, max)
    // Check after reading the page: while the views are being rebuilt, the page may be incomplete.
    await Promise.all(SERVED_TOPICS.map((topic) => views.requireComplete(topic)))
    if (webhook !== null) {
      await requests.append(
        notifications.map((notification) => ({ webhook, notification })),
        replay,
      )
      metrics.requested.inc(notifications.length)
    }
    const { id: replayId, webhookId, accountId, environment } = replay
    const step = replay.steps + 1
    const position = await recorder.record(
      { type: 'ReplayAdvanced', webhookId, replayId, step, next, advancedAt: now() },
      { accountId, environment, keyId: null },
    )
    await views.waitUntilVisible(position)
    return { requested: notifications.length, nextInMs: 0 }
  }
}
