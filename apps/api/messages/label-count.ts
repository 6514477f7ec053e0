import type { LabelQuery, LabelTotals } from '#libs/ports/read-model/inbox-views.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import { invalid, Problem, type RequestError } from '../http/problems.js'
import { readLabels, type Label } from '../inboxes/inbox-requests.dto.js'
import type { Views } from '../views.js'
import type { CountMode, WaitForEnvironmentMessage } from './message-filters.js'

/*
 * Whether the inboxes of a label have received the messages that a wait requires, and if not, which inboxes have too few
 * or too many.
 */

/** What a wait requires of a label. */
export interface CountWanted {
  label: Label
  count: number
  mode: CountMode
  /** The minimum of each inbox, in both modes. Null if the messages may be distributed in any way. */
  perInbox: number | null
}

const MAX_LISTED = 100

/** What may be sent with `count`. */
const WITH_COUNT: ReadonlySet<string> = new Set(['count', 'label', 'mode', 'per_inbox', 'timeout'])

/** What the query requires; null if it waits for a message. Throws invalid-request. */
export function readCountWanted(query: WaitForEnvironmentMessage): CountWanted | null {
  const { count, mode = 'at_least', per_inbox: perInbox = null } = query
  if (count === undefined) {
    const given = (['mode', 'per_inbox'] as const).find((name) => query[name] !== undefined)
    if (given === undefined) return null
    throw invalid({ detail: `${given} can only be sent with count`, parameter: given })
  }
  const [label, ...others] = readLabels(query.label)
  if (label === undefined || others.length > 0) {
    throw invalid({ detail: 'count needs exactly one label', parameter: 'label' })
  }
  const isDefault = (name: string, value: unknown) => name === 'order' && value === 'asc'
  const [first, ...rest] = Object.entries(query)
    .filter(([name, value]) => value !== undefined && !WITH_COUNT.has(name) && !isDefault(name, value))
    .map(([parameter]): RequestError => ({ detail: `${parameter} can't be sent with count`, parameter }))
  if (first !== undefined) throw invalid(first, ...rest)
  return { label, count, mode, perInbox }
}

/** The counts of a label, and whether they are as required. */
export interface LabelCount extends LabelTotals {
  isReached: boolean
}

/** The views must be complete. */
export async function countLabel(
  { inboxes }: Pick<Views, 'inboxes'>,
  query: LabelQuery,
  wanted: CountWanted,
): Promise<LabelCount> {
  const totals = await inboxes.labelTotals(query)
  const { received } = totals
  const { count, mode, perInbox } = wanted
  if (received < count || (mode === 'exactly' && received > count)) return { ...totals, isReached: false }
  if (perInbox === null) return { ...totals, isReached: true }
  // The totals often suffice. Each inbox is only looked at if they allow it.
  if (received < perInbox * totals.inboxes) return { ...totals, isReached: false }
  const few = await inboxes.listLabelCounts({ ...query, from: 0, to: perInbox, limit: 1 })
  return { ...totals, isReached: few.length === 0 }
}

/**
 * The answer if a label does not have the required messages in time, with the first inboxes that have too few or too many.
 * If no number is required of each, an even share is expected. `hint` says why a message may be missing.
 */
export async function countMissed(
  { inboxes: counts }: Pick<Views, 'inboxes'>,
  query: LabelQuery,
  wanted: CountWanted,
  totals: LabelTotals,
  { hint, cursor }: { hint: string | null; cursor: string },
): Promise<Problem> {
  const { label, count, mode, perInbox } = wanted
  const { inboxes, received } = totals
  const share = perInbox ?? count / Math.max(inboxes, 1)
  const listed = async (from: number, to: number) => {
    const found = await counts.listLabelCounts({ ...query, from, to, limit: MAX_LISTED })
    return found.map(({ inboxId, received: each }) => ({ inbox_id: inboxId, count: each }))
  }
  const [tooFew, tooMany] = await Promise.all([
    listed(0, Math.floor(share)),
    listed(Math.ceil(share) + 1, Number.MAX_SAFE_INTEGER),
  ])
  const each = perInbox === null ? '' : `, at least ${perInbox} in each inbox`
  const expected = `${mode === 'exactly' ? 'exactly' : 'at least'} ${count} were expected${each}`
  const detail = `The inboxes with ${label.join(':')} have received ${received} messages, and ${expected}. Inboxes: ${inboxes}. Each list has at most ${MAX_LISTED} of them.`
  return new Problem('no-matching-message', {
    detail: hint === null ? detail : `${detail} ${hint}`,
    headers: { 'mayfly-cursor': cursor },
    members: { count: received, expected: count, too_few: tooFew, too_many: tooMany, cursor },
  })
}

/** The label as a query of the views. */
export function labelQuery(
  { accountId, environment }: MailOwner,
  { label: [name, value] }: CountWanted,
  now: Date,
): LabelQuery {
  return { accountId, environment, name, value, now }
}
