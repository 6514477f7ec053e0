import type { Schemas } from '#clients/typescript/src/options.js'
import { call, UnexpectedAnswerError, type Target } from './client.js'
import { until } from './until.js'

export type UsageTotalsJson = Pick<Schemas['UsageRow'], keyof typeof NOTHING>
export type UsageRowJson = Schemas['UsageRow']
export type UsageReportJson = Schemas['UsageReport']

const NOTHING = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }

type Query = Readonly<Record<string, string>>

/** The API promises 5 seconds, which a busy machine may exceed. */
const MAX_DELAY_MS = 15_000

/** Rows of usage; rejects unless the answer is 200. */
export function usageOf(target: Target, query: Query = {}): Promise<UsageRowJson[]> {
  return getJson(target, '/v1/usage', query)
}

/** The report of everything with a label; rejects unless the answer is 200. */
export function reportOf(target: Target, label: string, query: Query = {}): Promise<UsageReportJson> {
  return getJson(target, '/v1/usage/report', { label, ...query })
}

/** Polls until the counted usage is right; rejects after 15 seconds. */
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
    MAX_DELAY_MS,
  ).catch((error: unknown) => {
    throw new Error(`last counted: ${JSON.stringify(last)}`, { cause: error })
  })
}

/** The totals of each group over all intervals. */
export function byGroup(rows: readonly UsageRowJson[]): Map<string | null, UsageTotalsJson> {
  const groups = Map.groupBy(rows, ({ group }) => group)
  return new Map([...groups].map(([group, parts]) => [group, sumOf(parts)]))
}

/** The totals of all rows. */
export function sumOf(rows: readonly UsageTotalsJson[]): UsageTotalsJson {
  const sum = { ...NOTHING }
  for (const row of rows) {
    sum.requests += row.requests
    sum.refusals += row.refusals
    sum.inboxes += row.inboxes
    sum.mails += row.mails
    sum.bytes += row.bytes
  }
  return sum
}

async function getJson<Body>(target: Target, path: string, query: Query): Promise<Body> {
  const answer = await call<Body>(target, 'GET', `${path}?${new URLSearchParams(query).toString()}`)
  if (answer.status !== 200) throw new UnexpectedAnswerError(path, answer.status, answer.body)
  return answer.body
}
