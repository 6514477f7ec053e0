import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { VIEWED_TOPICS, type ViewedTopic } from '#libs/ports/event-log/topics.js'
import { isCatchingUp, type InboxQueries } from './queries.js'

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
