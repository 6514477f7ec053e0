import type { QuantilesAndMax } from '#libs/ports/usage/usage-store.js'
import { facts, oneLine } from '../printing.js'

/*
 * The result of `mayfly load verify`: what it prints as JSON, and what the reports are made of.
 */

export const KINDS = ['missing', 'erased', 'duplicate', 'unexpected', 'late', 'altered', 'reordered'] as const
export type Kind = (typeof KINDS)[number]

export const MEANING: Readonly<Record<Kind, string>> = {
  missing: 'sent and not received',
  erased: 'sent to inboxes that have ended',
  duplicate: 'received more often than sent',
  unexpected: 'received and not in the manifest',
  late: 'received too late',
  altered: 'received with another source',
  reordered: 'received in another order',
}

/** A difference from the API's answer. */
export interface DifferenceJson {
  kind: Kind
  recipient: string
  id: string | null
  message_id?: string
  inbox_id?: string
  received_at?: string
  /** In the manifest file. The API counts only the lines that it got, those of accepted mails. */
  line?: number
  after_line?: number
  sent_at?: string | null
  delay_ms?: number
  late_by_ms?: number
  sha256?: string
  received_sha256?: string
  state?: string
  ended_at?: string
}

export type SummaryJson = Record<Kind | 'expected' | 'found', number> & {
  kind: 'summary'
  visible_ms: QuantilesAndMax | null
}

export interface UsageJson {
  counted_up_to: string | null
  visible_ms: QuantilesAndMax | null
  first_read_ms: QuantilesAndMax | null
  mails_per_second: number | null
  timeline: readonly { from: string; to: string; mails: number }[]
}

export interface Verification {
  label: string
  manifest: string
  /** Whether all mail is as the manifest says. */
  passed: boolean
  /** Lines of the manifest that were not accepted, and so not expected. */
  refused: number
  summary: SummaryJson
  /** The first differences of each kind. */
  differences: Readonly<Record<Kind, readonly DifferenceJson[]>>
  /** The usage report of the label; null if usage is not counted. */
  usage: UsageJson | null
}

/** The result in one line. */
export function resultOf({ label, passed, summary }: Verification): string {
  const { expected, found, missing } = summary
  if (passed) return expected === 0 ? 'no mail was expected, and none has arrived' : 'all mail is as expected'
  if (found === 0 && missing === expected) return `the active inboxes with ${label} have none of the mail`
  return 'the mail differs from the manifest'
}

/** What a difference is about, in one line. */
export function describe(difference: DifferenceJson): string {
  const { recipient, id, line, message_id: messageId } = difference
  const where = line === undefined ? '' : `line ${line}: `
  const what = `${where}${id ?? '(without an id)'} to ${recipient}`
  return [what, detailOf(difference), messageId].filter((part) => part !== undefined).join(', ')
}

function detailOf(difference: DifferenceJson): string | undefined {
  switch (difference.kind) {
    case 'late':
      return `${difference.delay_ms} ms, ${difference.late_by_ms} ms too late`
    case 'altered':
      return `SHA-256 ${difference.received_sha256} instead of ${difference.sha256}`
    case 'reordered':
      return `received after line ${difference.after_line}`
    case 'erased':
      return `inbox ${difference.state} at ${difference.ended_at}`
    case 'missing':
    case 'duplicate':
    case 'unexpected':
      return undefined
  }
}

/** The percentiles of a run, by what was measured. */
export function latenciesOf({ usage, summary }: Verification): [name: string, ms: QuantilesAndMax | null][] {
  return [
    ['250 to visible', usage?.visible_ms ?? summary.visible_ms],
    ['250 to first read', usage?.first_read_ms ?? null],
  ]
}

/** The result for people. */
export function verificationText(verification: Verification): string {
  const { label, refused, summary, usage } = verification
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, countText(kind, summary[kind])]))
  const latencies = latenciesOf(verification).map(([name, ms]) => [
    `${name} ms`,
    ms === null ? null : `p50 ${ms.p50}, p95 ${ms.p95}, p99 ${ms.p99}, max ${ms.max}`,
  ])
  const overview = facts({
    run: label,
    result: resultOf(verification),
    expected: summary.expected,
    ...(refused === 0 ? {} : { refused: `${refused} (not accepted, and so not expected)` }),
    found: summary.found,
    ...counts,
    ...(Object.fromEntries(latencies) as Record<string, string | null>),
    'mails per second': usage?.mails_per_second ?? null,
  })
  const lists = KINDS.flatMap((kind) => list(verification, kind))
  return [overview, ...lists].join('\n')
}

function countText(kind: Kind, count: number): string {
  return count === 0 ? '0' : `${count} (${MEANING[kind]})`
}

function list({ summary, differences }: Verification, kind: Kind): string[] {
  const shown = differences[kind]
  if (shown.length === 0) return []
  const more = summary[kind] - shown.length
  return [
    '',
    `${kind}:`,
    ...shown.map((difference) => `  ${oneLine(describe(difference))}`),
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ]
}
