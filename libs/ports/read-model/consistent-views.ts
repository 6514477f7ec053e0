import { isId, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { Partition, PartitionRange, Position, LogLayout } from '#libs/ports/event-log/event-log.js'
import { type ViewedTopic, partitionOf, VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import { type Signals, Doorbell } from '#libs/ports/signals/signals.js'
import { isCatchingUp, ReadModelUnavailableError, type InboxQueries } from './queries.js'

/** The views lack records that the log has: what they do not show may exist. */
export class ViewsCatchingUpError extends ReadModelUnavailableError {
  override readonly name = 'ViewsCatchingUpError'
}

/** The views that a read needs: all that are made of a topic, or those of one inbox or webhook. */
export type ViewScope = ViewedTopic | InboxId | WebhookId

/** Signalled when a partition's views have moved. */
export function movedChannel({ topic, partition }: Partition): string {
  return `moved:${topic}:${partition}`
}

const LOOK_AGAIN_MS = 500

/**
 * Answers whether the views are complete. Views follow the log with a delay, and can be lost and rebuilt at any moment;
 * until they are rebuilt, what they do not show may exist. A row that is found is true in any case, if not the newest
 * state. That a row does not exist, or that a list is complete, is true of complete views only.
 */
export class ConsistentViews {
  constructor(
    protected readonly log: LogLayout,
    private readonly queries: Pick<InboxQueries, 'progress'>,
    readonly signals: Signals,
    /** The longest wait until a record is visible. */
    private readonly visibleWithinMs = 10_000,
  ) {}

  /** Whether the views show all that the log held when they were begun. */
  async isComplete(scope: ViewScope): Promise<boolean> {
    return (await this.completeSince(scope)) !== null
  }

  /** Throws ViewsCatchingUpError unless the views are complete. */
  async requireComplete(scope: ViewScope): Promise<void> {
    if (!(await this.isComplete(scope))) throw catchingUp(scope)
  }

  /** Rows read from views that were complete all along. Throws ViewsCatchingUpError. */
  async readComplete<Rows>(scope: ViewScope, read: () => Promise<Rows>): Promise<Rows> {
    const since = await this.completeSince(scope)
    if (since === null) throw catchingUp(scope)
    const rows = await read()
    // Views of a small log are rebuilt within milliseconds: complete again is not complete all along.
    if ((await this.completeSince(scope)) !== since) throw catchingUp(scope)
    return rows
  }

  /** A row, or null if it certainly does not exist. Throws ViewsCatchingUpError if that is unknown. */
  async find<Row>(scope: ViewScope, read: () => Promise<Row | null>): Promise<Row | null> {
    return (await read()) ?? this.readComplete(scope, read)
  }

  /** Rows read from views that show all that the log holds now, for which it waits. Throws ViewsCatchingUpError. */
  async readLatest<Rows>(topic: ViewedTopic, read: () => Promise<Rows>): Promise<Rows> {
    const { partitions } = await this.log.topology(topic)
    await this.waitUntilAllVisible(partitions)
    const rows = await read()
    // The views may have been lost meanwhile.
    await this.waitUntilAllVisible(partitions, 0)
    return rows
  }

  /** Resolves with whether the views show a record within the time given. */
  async isVisibleWithin(position: Position, withinMs: number): Promise<boolean> {
    if (await this.isVisible(position)) return true
    const deadlineMs = performance.now() + withinMs
    const bell = new Doorbell()
    const unsubscribe = await this.signals.subscribe(movedChannel(position), () => bell.ring())
    try {
      // The views may have moved before the subscription: each turn begins with a look.
      while (!(await this.isVisible(position))) {
        const leftMs = deadlineMs - performance.now()
        if (leftMs <= 0) return false
        await bell.wait(Math.min(leftMs, LOOK_AGAIN_MS))
      }
      return true
    } finally {
      unsubscribe()
    }
  }

  /** Resolves once the views show a record; throws ViewsCatchingUpError if that takes too long. */
  async waitUntilVisible(position: Position, withinMs = this.visibleWithinMs): Promise<void> {
    if (await this.isVisibleWithin(position, withinMs)) return
    throw new ViewsCatchingUpError('The change is stored but can not be read yet.')
  }

  /** As `waitUntilVisible`, for all records of these ranges. */
  async waitUntilAllVisible(ranges: readonly PartitionRange[], withinMs?: number): Promise<void> {
    const last = ranges.filter(({ end }) => end > 0).map((range) => ({ ...range, offset: range.end - 1 }))
    await Promise.all(last.map((position) => this.waitUntilVisible(position, withinMs)))
  }

  private async isVisible(position: Position): Promise<boolean> {
    const progress = await this.queries.progress(position)
    return progress !== null && progress.position > position.offset
  }

  /** When complete views were begun, which changes whenever they are rebuilt. Null while they catch up. */
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
  'account-events': 'The accounts, keys and webhooks are not complete yet.',
  'webhook-events': 'The deliveries are not complete yet.',
}

function catchingUp(scope: ViewScope): ViewsCatchingUpError {
  const text = isId('inb', scope)
    ? 'What this inbox contains is not complete yet.'
    : INCOMPLETE[topicOf(scope)]
  return new ViewsCatchingUpError(text)
}

/** Signalled once the views show something new of an inbox: a message, a deletion, its end. */
export function inboxChannel(inboxId: InboxId): string {
  return `inbox:${inboxId}`
}

export interface Backlog {
  /** Records on the log that the views don't show yet. */
  records: number
  /** Whether any partition's views have not reached the log's end of when they were begun. */
  isCatchingUp: boolean
}

/** Of all topics that views follow. */
export async function measureWholeBacklog(
  log: LogLayout,
  queries: Pick<InboxQueries, 'progress'>,
): Promise<Backlog> {
  const backlogs = await Promise.all(VIEWED_TOPICS.map((topic) => measureBacklog(log, queries, topic)))
  return {
    records: backlogs.reduce((sum, { records }) => sum + records, 0),
    isCatchingUp: backlogs.some(({ isCatchingUp }) => isCatchingUp),
  }
}

export async function measureBacklog(
  log: LogLayout,
  queries: Pick<InboxQueries, 'progress'>,
  topic: ViewedTopic,
): Promise<Backlog> {
  const { partitions } = await log.topology(topic)
  const backlog: Backlog = { records: 0, isCatchingUp: false }
  const stands = await Promise.all(
    partitions.map(async (range) => ({ ...range, progress: await queries.progress(range) })),
  )
  for (const { first, end, progress } of stands) {
    backlog.records += Math.max(end - (progress?.position ?? first), 0)
    if (isCatchingUp(progress)) backlog.isCatchingUp = true
  }
  return backlog
}
