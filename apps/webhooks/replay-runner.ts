import type { Logger } from 'pino'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import type { ReplayLeases, WebhookQueries } from '#libs/ports/read-model/queries.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { pauseUntilAborted } from '#libs/runtime/timing/waiting.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Requests } from './matching.js'
import { NOTHING_MORE, type ReplayPages } from './replay-pages.js'
import type { WebhookMetrics } from './attempts.js'

export interface ReplayRunnerOptions {
  replays: ReplayLeases
  webhooks: Pick<WebhookQueries, 'webhook'>
  pages: Pick<ReplayPages, 'page'>
  requests: Pick<Requests, 'append'>
  recorder: Pick<Recorder, 'record'>
  views: Pick<ConsistentViews, 'requireComplete' | 'waitUntilVisible'>
  /** Deliveries that this process asks for in a second, for all replays together. */
  perSecond: number
  now: () => Date
  logger: Logger
  metrics: WebhookMetrics
}

/** In which a step is on the log and in the views, or another process makes it again. */
const LEASE_MS = 15_000
/** Of one replay without an attempt: what its webhook is told as it happens has no more than these ahead of it. */
const MAX_WAITING = 50
const WHILE_WAITING_MS = 200
const WHILE_DISABLED_MS = 5_000
const AFTER_ERROR_MS = 1_000

/**
 * Asks for the deliveries of replays, a step at a time and replay by replay. A step is made again where a process was
 * killed within it: its deliveries have the same ids then.
 */
export class ReplayRunner {
  constructor(private readonly options: ReplayRunnerOptions) {}

  /** Runs all that wait for a step; ends once there are none, or after the step under way. Deals with its own errors. */
  async runAll(signal: AbortSignal): Promise<void> {
    const { replays, now, logger, perSecond } = this.options
    try {
      while (!signal.aborted) {
        const replay = await replays.claimReplay({ now: now(), leaseMs: LEASE_MS })
        if (replay === null) return
        const asked = await this.step(replay)
        await pauseUntilAborted((asked * 1_000) / perSecond, signal)
      }
    } catch (error) {
      logger.error({ err: error }, 'replays could not be looked for: tried again')
    }
  }

  /** How many deliveries it has asked for. */
  private async step(replay: Replay): Promise<number> {
    const { replays, now, logger } = this.options
    const key = { webhookId: replay.webhookId, replayId: replay.id }
    const { asked, againInMs } = await this.advance(replay).catch((error: unknown) => {
      logger.error({ err: error, ...key }, 'a replay did not get on: tried again')
      return { asked: 0, againInMs: AFTER_ERROR_MS }
    })
    await replays.releaseReplay(key, new Date(now().getTime() + againInMs))
    return asked
  }

  private async advance(replay: Replay): Promise<{ asked: number; againInMs: number }> {
    const { requests, recorder, views, metrics, now } = this.options
    const webhook = await this.options.webhooks.webhook(replay.webhookId)
    if (webhook?.state === 'disabled') return { asked: 0, againInMs: WHILE_DISABLED_MS }
    const most = Math.min(MAX_WAITING - (replay.requested - replay.begun), this.options.perSecond)
    if (most <= 0) return { asked: 0, againInMs: WHILE_WAITING_MS }
    // A webhook that is gone has nothing more to be told.
    const { notifications, next } =
      webhook === null ? NOTHING_MORE : await this.options.pages.page(webhook, replay, most)
    // After the page is read: views that were rebuilt meanwhile may have been incomplete.
    await Promise.all(VIEWED_TOPICS.map((topic) => views.requireComplete(topic)))
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
    return { asked: notifications.length, againInMs: 0 }
  }
}
