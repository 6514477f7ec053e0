import { unlessAborted } from '#libs/runtime/timing.js'
import {
  INTERVAL_MS,
  UsageUnavailableError,
  WHY_NOT_COUNTED,
  type QuantilesAndMax,
  type UsageGrouping,
  type UsageOwner,
  type UsageQueries,
  type UsageReport,
  type UsageTotals,
} from '#libs/ports/usage/usage-store.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { AccountQueries } from '#libs/ports/read-model/queries.js'
import type { Principal } from '../access/principal.js'
import { readTime } from '../http/rules.js'
import { invalid, unavailable } from '../http/problems.js'
import { readLabels } from '../inboxes/inbox-requests.dto.js'
import type { Instance } from '../instance.js'
import type { CountedUpTo } from './counted-up-to.js'
import type { ExportUsage, ReadReport, ReadUsage, UsageSpan } from './usage-parameters.dto.js'
import type { UsageRow } from './usage-schemas.js'

export interface UsagePorts {
  /** Null if usage is not stored. */
  queries: UsageQueries | null
  countedUpTo: Pick<CountedUpTo, 'find'> | null
  accounts: Pick<AccountQueries, 'listKeys'>
  /** Called with the error if an answer has no usage because it could not be read. */
  onUnavailable: (error: unknown) => void
}

interface Span {
  from: Date
  to: Date
}

const DAY_MS = INTERVAL_MS.day
/** Single events are kept this long. */
const REPORT_DAYS = 90
export const MAX_ROWS = 10_000
/** An export has the names of the newest keys, because each is a parameter of its query. */
const MAX_NAMED_KEYS = 1_000
/** Each export takes disk space, and a client may read it slowly. */
const MAX_EXPORTS = 4
const MAX_EXPORTS_OF_ACCOUNT = 2
/** The maximum time that an answer about a key waits for its usage. */
const TOTALS_WITHIN_MS = 3_000
/** The maximum time that the answer about a load run waits for its usage. */
const REPORT_WITHIN_MS = 10_000

export class Usage {
  private readonly exporting: AccountId[] = []

  constructor(
    private readonly ports: UsagePorts,
    private readonly instance: Instance,
  ) {}

  /** The rows, by time and then by group. Throws invalid-request if there are more than MAX_ROWS rows. */
  async figures(principal: Principal, query: ReadUsage): Promise<UsageRow[]> {
    const span = this.spanOf(query, DAY_MS)
    const { interval } = query
    const rows = await this.queries.figures({
      ...span,
      owner: ownerOf(principal),
      interval,
      grouping: groupingOf(query.group_by),
      labels: readLabels(query.label),
      limit: MAX_ROWS,
    })
    if (rows === null) {
      throw invalid({
        detail: `There are more than ${MAX_ROWS} rows: request longer intervals or a shorter span.`,
        parameter: 'interval',
      })
    }
    const keyNames: ReadonlyMap<string, string> | null =
      query.group_by === 'key' ? await this.keyNames(principal.accountId) : null
    return rows.map((row) => ({
      ...row,
      ...within(span, row.at, INTERVAL_MS[interval]),
      groupName: keyNames?.get(row.group ?? '') ?? null,
    }))
  }

  async report(
    principal: Principal,
    { label, ...span }: ReadReport,
  ): Promise<UsageReport & { countedUpTo: Date | null }> {
    const { from, to } = this.spanOf(span, REPORT_DAYS * DAY_MS)
    const { queries } = this
    // Read before the report, which then has everything that was counted by that time.
    const countedUpTo = (await this.ports.countedUpTo?.find()) ?? null
    const query = { from, to, owner: ownerOf(principal), labels: readLabels(label) }
    return { ...(await queries.report(query)), countedUpTo }
  }

  /** The total usage of each key. Null if it can't be read now. */
  async totals(
    accountId: AccountId,
    keyIds: readonly KeyId[],
  ): Promise<ReadonlyMap<KeyId, UsageTotals> | null> {
    const { queries } = this.ports
    if (queries === null) return null
    return this.orNull(() => queries.totals(accountId, keyIds), TOTALS_WITHIN_MS)
  }

  /** From the acceptance of mail with a label until it is visible, in the last 90 days. Null if it can't be read now. */
  async visible(principal: Principal, label: string): Promise<QuantilesAndMax | null> {
    if (this.ports.queries === null) return null
    const report = await this.orNull(() => this.report(principal, { label: [label] }), REPORT_WITHIN_MS)
    return report?.visibleMs ?? null
  }

  private async orNull<Result>(read: () => Promise<Result>, withinMs: number): Promise<Result | null> {
    const late = AbortSignal.timeout(withinMs)
    try {
      return await unlessAborted(read(), late)
    } catch (error) {
      if (!late.aborted && !(error instanceof UsageUnavailableError)) throw error
      this.ports.onUnavailable(error)
      return null
    }
  }

  /**
   * The usage of the whole account. The signal must always abort when the client stops reading. Rejects if it has
   * already aborted. Throws too-many-streams.
   */
  async export(
    { accountId }: Principal,
    { format, table, ...times }: ExportUsage,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const span = this.spanOf(times, DAY_MS)
    const keyNames = await this.keyNames(accountId)
    signal.throwIfAborted()
    const own = this.exporting.filter((exporter) => exporter === accountId).length
    if (this.exporting.length >= MAX_EXPORTS || own >= MAX_EXPORTS_OF_ACCOUNT) {
      const limit = `${MAX_EXPORTS} exports at once, ${MAX_EXPORTS_OF_ACCOUNT} of them for one account`
      throw unavailable('too-many-streams', `This instance allows at most ${limit}.`)
    }
    this.exporting.push(accountId)
    const end = () => this.exporting.splice(this.exporting.indexOf(accountId), 1)
    signal.addEventListener('abort', end, { once: true })
    return this.queries.export({ accountId, ...span, table, format, keyNames }, signal)
  }

  /** The names of the account's newest keys. */
  private async keyNames(accountId: AccountId): Promise<ReadonlyMap<KeyId, string>> {
    const newest = { order: 'desc', after: null, limit: MAX_NAMED_KEYS } as const
    const keys = await this.ports.accounts.listKeys(accountId, newest)
    return new Map(keys.map(({ id, name }) => [id, name]))
  }

  private get queries(): UsageQueries {
    const { queries } = this.ports
    if (queries !== null) return queries
    throw unavailable('read-model-unavailable', `Usage is not counted here: ${WHY_NOT_COUNTED}.`)
  }

  private spanOf({ from, to }: UsageSpan, defaultMs: number): Span {
    const end = to === undefined ? this.instance.now() : readTime(to)
    const begin = from === undefined ? new Date(end.getTime() - defaultMs) : readTime(from)
    if (begin < end) return { from: begin, to: end }
    throw invalid({
      detail: 'from must be before to (default: now)',
      parameter: from === undefined ? 'to' : 'from',
    })
  }
}

/** A key sees its own usage, a key with the scope `admin` the usage of its account. */
function ownerOf({ accountId, keyId, scopes }: Principal): UsageOwner {
  return { accountId, keyId: scopes.includes('admin') ? null : keyId }
}

function groupingOf(text: string): UsageGrouping {
  if (text === 'none' || text === 'key' || text === 'environment') return { by: text }
  return { by: 'label', name: text.slice('label.'.length) }
}

function within({ from, to }: Span, at: Date, unitMs: number): Span {
  return {
    from: new Date(Math.max(at.getTime(), from.getTime())),
    to: new Date(Math.min(at.getTime() + unitMs, to.getTime())),
  }
}
