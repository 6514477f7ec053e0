import { call, OtherAnswerError, type Target } from './client.js'
import { until } from './until.js'

export interface UsageTotalsJson {
  requests: number
  refusals: number
  inboxes: number
  mails: number
  bytes: number
}

export interface QuantilesJson {
  p50: number
  p95: number
  p99: number
}

export interface UsageRowJson extends UsageTotalsJson {
  from: string
  to: string
  group: string | null
  request_ms: QuantilesJson | null
  visible_ms: QuantilesJson | null
}

export interface UsageReportJson extends UsageTotalsJson {
  counted_up_to: string | null
  duplicates: number
  read: number
  inboxes_without_mail: number
  accept_ms: (QuantilesJson & { max: number }) | null
  visible_ms: QuantilesJson | null
  first_read_ms: QuantilesJson | null
  first_mail_at: string | null
  last_mail_at: string | null
  mails_per_second: number | null
  timeline: { from: string; to: string; mails: number; bytes: number }[]
}

type Query = Readonly<Record<string, string>>

/** How far usage is behind what happens at most, as the API promises. */
const BEHIND_MS = 5_000

/** Rows of usage; fails on any answer but 200. */
export function usageOf(target: Target, query: Query = {}): Promise<UsageRowJson[]> {
  return got(target, '/v1/usage', query)
}

/** The report of what bears a label; fails on any answer but 200. */
export function reportOf(target: Target, label: string, query: Query = {}): Promise<UsageReportJson> {
  return got(target, '/v1/usage/report', { label, ...query })
}

/** What is counted once that is as it should be; fails if that takes longer than usage is behind at most. */
export function untilCounted<Counted>(
  look: () => Promise<Counted>,
  isRight: (counted: Counted) => boolean,
): Promise<Counted> {
  let last: Counted | null = null
  return until(
    'usage to be counted',
    async () => {
      last = await look()
      return isRight(last) ? last : null
    },
    BEHIND_MS,
  ).catch((error: unknown) => {
    throw new Error(`last counted: ${JSON.stringify(last)}`, { cause: error })
  })
}

/** What rows come to, group by group: a run may be in several intervals. */
export function byGroup(rows: readonly UsageRowJson[]): Map<string | null, UsageTotalsJson> {
  const groups = Map.groupBy(rows, ({ group }) => group)
  return new Map([...groups].map(([group, parts]) => [group, sumOf(parts)]))
}

/** What rows come to, all of them. */
export function sumOf(rows: readonly UsageTotalsJson[]): UsageTotalsJson {
  const sum = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }
  for (const row of rows) {
    sum.requests += row.requests
    sum.refusals += row.refusals
    sum.inboxes += row.inboxes
    sum.mails += row.mails
    sum.bytes += row.bytes
  }
  return sum
}

async function got<Body>(target: Target, path: string, query: Query): Promise<Body> {
  const answer = await call<Body>(target, 'GET', `${path}?${new URLSearchParams(query).toString()}`)
  if (answer.status !== 200) throw new OtherAnswerError(path, answer.status, answer.body)
  return answer.body
}
