import { isId, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { LogLayout, Partition, PartitionRange, Position } from '#libs/ports/event-log/event-log.js'
import { partitionOf, SERVED_TOPICS, type ViewedTopic } from '#libs/ports/event-log/topics.js'
import { Doorbell, type Signals } from '#libs/ports/signals/signals.js'
import { isCatchingUp, ReadModelUnavailableError, type Progress, type ViewProgress } from './view-store.js'
import type { MailOwner } from './views.js'

/*
 * Reading from views that follow the log with a delay: whether they are complete, waiting until they show a record, and
 * how far they are behind.
 */

/** The views lack records of the log: something that they don't show may exist. */
export class ViewsCatchingUpError extends ReadModelUnavailableError {}

/** The views that a read depends on: all views of a topic, or those of one inbox or webhook. */
export type ViewScope = ViewedTopic | InboxId | WebhookId

/** The channel that is signalled when a partition's views have advanced. */
export function progressChannel({ topic, partition }: Partition): string {
  return `moved:${topic}:${partition}`
}

/** The channel that is signalled when the views show a change of an inbox: a message, a deletion or its end. */
export function inboxChannel(inboxId: InboxId): string {
  return `inbox:${inboxId}`
}

/** The channel that is signalled when the views show a message, a deletion or the end of any inbox of an environment. */
export function environmentChannel({ accountId, environment }: MailOwner): string {
  return `environment:${accountId}:${environment}`
}

const CHECK_AGAIN_MS = 500

/**
 * Knows whether the views are complete. Views follow the log with a delay, and may be lost and rebuilt at any time; until
 * then, something that they don't show may exist. A row that is found is always valid, although possibly not the latest
 * state. Only complete views show that a row does not exist, or that a list is complete.
 */
export class ConsistentViews {
  constructor(
    protected readonly log: LogLayout,
    private readonly queries: ViewProgress,
    readonly signals: Signals,
    private readonly visibleWithinMs = 10_000,
  ) {}

  /** Whether the views show everything that the log held when they were begun. */
  async isComplete(scope: ViewScope): Promise<boolean> {
    return (await this.completeSince(scope)) !== null
  }

  /** Throws ViewsCatchingUpError unless the views are complete. */
  async requireComplete(scope: ViewScope): Promise<void> {
    if (!(await this.isComplete(scope))) throw catchingUp(scope)
  }

  /** Reads rows from views that are complete during the whole read. Throws ViewsCatchingUpError otherwise. */
  async readComplete<Rows>(scope: ViewScope, read: () => Promise<Rows>): Promise<Rows> {
    const requireComplete = await this.beginRead(scope)
    const rows = await read()
    await requireComplete()
    return rows
  }

  /**
   * Begins a read of complete views. Resolves with a check that must follow the read: it rejects unless the views were
   * complete all the time. Both throw ViewsCatchingUpError.
   */
  async beginRead(scope: ViewScope): Promise<() => Promise<void>> {
    const since = await this.completeSince(scope)
    if (since === null) throw catchingUp(scope)
    return async () => {
      // Views of a small log are rebuilt within milliseconds, so it is not enough that they are complete again.
      if ((await this.completeSince(scope)) !== since) throw catchingUp(scope)
    }
  }

  /** Finds a row; null if it definitely does not exist. Throws ViewsCatchingUpError if that is unknown. */
  async find<Row>(scope: ViewScope, read: () => Promise<Row | null>): Promise<Row | null> {
    return (await read()) ?? this.readComplete(scope, read)
  }

  /** Waits until the views show everything that the log holds now, then reads rows. Throws ViewsCatchingUpError. */
  async readLatest<Rows>(topic: ViewedTopic, read: () => Promise<Rows>): Promise<Rows> {
    await this.waitForLatest(topic)
    // If the views are lost in between, those that are built then show even later records.
    return this.readComplete(topic, read)
  }

  /** Waits until the views show everything that the log holds now; resolves with that. Throws ViewsCatchingUpError. */
  async waitForLatest(topic: ViewedTopic, withinMs?: number): Promise<readonly PartitionRange[]> {
    const { partitions } = await this.log.topology(topic)
    await this.waitUntilAllVisible(partitions, withinMs)
    return partitions
  }

  /** Resolves with whether the views show a record within the time limit. */
  async isVisibleWithin(position: Position, withinMs: number): Promise<boolean> {
    if (await this.isVisible(position)) return true
    const deadlineMs = performance.now() + withinMs
    const bell = new Doorbell()
    const unsubscribe = await this.signals.subscribe(progressChannel(position), () => bell.ring())
    try {
      // The views may have advanced before the subscription, so each turn starts with a check.
      while (!(await this.isVisible(position))) {
        const leftMs = deadlineMs - performance.now()
        if (leftMs <= 0) return false
        await bell.wait(Math.min(leftMs, CHECK_AGAIN_MS))
      }
      return true
    } finally {
      unsubscribe()
    }
  }

  /** Resolves once the views show a record. Throws ViewsCatchingUpError after the time limit. */
  async waitUntilVisible(position: Position, withinMs = this.visibleWithinMs): Promise<void> {
    if (await this.isVisibleWithin(position, withinMs)) return
    throw new ViewsCatchingUpError('The change is stored but cannot be read yet.')
  }

  /** Like `waitUntilVisible`, for all records of these ranges. */
  async waitUntilAllVisible(ranges: readonly PartitionRange[], withinMs?: number): Promise<void> {
    const last = ranges.filter(({ end }) => end > 0).map((range) => ({ ...range, offset: range.end - 1 }))
    await Promise.all(last.map((position) => this.waitUntilVisible(position, withinMs)))
  }

  private async isVisible(position: Position): Promise<boolean> {
    const progress = await this.queries.progress(position)
    return progress !== null && progress.position > position.offset
  }

  /** When the complete views were begun, which changes whenever they are rebuilt. Null while they are catching up. */
  private async completeSince(scope: ViewScope): Promise<string | null> {
    const all = await Promise.all(this.partitionsOf(scope).map((each) => this.queries.progress(each)))
    return all.some(isCatchingUp) ? null : all.map((progress) => progress?.begunAtMs).join(' ')
  }

  private partitionsOf(scope: ViewScope): Partition[] {
    const topic = topicOf(scope)
    const count = this.log.partitionCount(topic)
    if (topic !== scope) return [{ topic, partition: partitionOf(scope, count) }]
    return Array.from({ length: count }, (_, partition) => ({ topic, partition }))
  }
}

function topicOf(scope: ViewScope): ViewedTopic {
  if (isId('inb', scope)) return 'inbox-events'
  return isId('whk', scope) ? 'webhook-events' : scope
}

const INCOMPLETE: Record<ViewedTopic, string> = {
  'inbox-events': 'The list of inboxes is not complete yet.',
  'account-events': 'The accounts, keys, domains and webhooks are not complete yet.',
  'webhook-events': 'The deliveries are not complete yet.',
  'audit-leaves': 'The audit log is not complete yet.',
}

function catchingUp(scope: ViewScope): ViewsCatchingUpError {
  const text = isId('inb', scope)
    ? 'What this inbox contains is not complete yet.'
    : INCOMPLETE[topicOf(scope)]
  return new ViewsCatchingUpError(text)
}

export interface Backlog {
  /** Records of the log that the views don't show yet. */
  records: number
  isCatchingUp: boolean
}

/** Measures the backlog of topics. Audit logs are not among the default: nothing waits for their views. */
export async function measureBacklog(
  log: LogLayout,
  queries: ViewProgress,
  topics: readonly ViewedTopic[] = SERVED_TOPICS,
): Promise<Backlog> {
  const all = await Promise.all(topics.map((topic) => readProgress(log, queries, topic)))
  return {
    records: all.flat().reduce((sum, { end, position }) => sum + Math.max(end - position, 0), 0),
    isCatchingUp: all.flat().some(({ progress }) => isCatchingUp(progress)),
  }
}

/** The ranges of a topic's partitions, with the offset that the views of each have reached by then. */
export async function readProgress(
  log: Pick<LogLayout, 'topology'>,
  queries: ViewProgress,
  topic: ViewedTopic,
): Promise<(PartitionRange & { position: number; progress: Progress | null })[]> {
  const { partitions } = await log.topology(topic)
  return Promise.all(
    partitions.map(async (range) => {
      const progress = await queries.progress(range)
      return { ...range, progress, position: progress?.position ?? range.first }
    }),
  )
}
