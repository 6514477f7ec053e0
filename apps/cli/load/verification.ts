import type { RunLine } from '#clients/typescript/src/runs.js'
import type { Schemas } from '#clients/typescript/src/options.js'
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

/** What the differences of a kind are, and how many of them faults made on purpose. */
export function aboutOf({ faults }: Summary, kind: Kind): string {
  if (kind === 'missing' && faults.dropped > 0) {
    return `${MEANING[kind]}; faults dropped ${faults.dropped} on purpose`
  }
  if (kind === 'duplicate' && faults.duplicated > 0) {
    return `${MEANING[kind]}; ${faults.duplicated} by a fault, on purpose`
  }
  return MEANING[kind]
}

export type Summary = Schemas['RunSummary']
/** Its lines count from 1 in the manifest, without empty ones. */
export type Difference = Exclude<RunLine, Summary>

export interface Verification {
  label: string
  manifest: string
  /** Whether all mail is as the manifest says. */
  passed: boolean
  /** Lines of the manifest that were not accepted, and so not expected. */
  refused: number
  summary: Summary
  /** The first differences of each kind. */
  differences: Readonly<Record<Kind, readonly Difference[]>>
  /** The usage report of the label; null if usage is not counted. */
  usage: Schemas['UsageReport'] | null
}

/** The result in one line. */
export function resultOf({ label, passed, summary }: Verification): string {
  const { expected, found, missing } = summary
  if (passed) return expected === 0 ? 'no mail was expected, and none has arrived' : 'all mail is as expected'
  if (found === 0 && missing === expected) return `the active inboxes with ${label} have none of the mail`
  return 'the mail differs from the manifest'
}

/** The first differences of a kind, each in one line, and how many more there are. */
export function linesOf({ summary, differences }: Verification, kind: Kind): string[] {
  const more = summary[kind] - differences[kind].length
  return [
    ...differences[kind].map((difference) => oneLine(describe(difference))),
    ...(more > 0 ? [`… and ${more} more`] : []),
  ]
}

function describe(difference: Difference): string {
  const { recipient, id, line } = difference
  const place = line === undefined ? '' : `line ${line}: `
  const messageId = 'message_id' in difference ? difference.message_id : ''
  const parts = [`${place}${id ?? '(without an id)'} to ${recipient}`, detailOf(difference), messageId]
  return parts.filter((part) => part !== '').join(', ')
}

function detailOf(difference: Difference): string {
  switch (difference.kind) {
    case 'late':
      return `${difference.delay_ms} ms, ${difference.late_by_ms} ms too late`
    case 'altered':
      return `SHA-256 ${difference.received_sha256} instead of ${difference.sha256}`
    case 'reordered':
      return `received after line ${difference.after_line}`
    case 'erased':
      return `inbox ${difference.state} at ${difference.ended_at}`
    case 'duplicate':
      return difference.duplicate_of === undefined
        ? ''
        : `repeats ${difference.duplicate_of} because of a fault`
    case 'missing':
    case 'unexpected':
      return ''
  }
}

/** The percentiles of a run in milliseconds, by what was measured. Without those of which nothing was. */
export function latenciesOf({ usage, summary }: Verification): [name: string, ms: Record<string, number>][] {
  const measured = [
    ['250 to visible', usage?.visible_ms ?? summary.visible_ms],
    ['250 to first read', usage?.first_read_ms ?? null],
  ] as const
  return measured.flatMap(([name, ms]) => (ms === null ? [] : [[name, { ...ms }]]))
}

/** The result for people. */
export function verificationText(verification: Verification): string {
  const { label, refused, summary, usage } = verification
  const countText = (kind: Kind) =>
    summary[kind] === 0 ? '0' : `${summary[kind]} (${aboutOf(summary, kind)})`
  const latencies = latenciesOf(verification).map(([name, ms]) => {
    const figures = Object.entries(ms).map(([quantile, value]) => `${quantile} ${value}`)
    return [`${name} ms`, figures.join(', ')] as const
  })
  const overview = facts({
    run: label,
    result: resultOf(verification),
    expected: summary.expected,
    refused: refused === 0 ? null : `${refused} (not accepted, and so not expected)`,
    found: summary.found,
    ...Object.fromEntries(KINDS.map((kind) => [kind, countText(kind)])),
    ...Object.fromEntries(latencies),
    'mails per second': usage?.mails_per_second,
  })
  const lists = KINDS.flatMap((kind) => {
    const lines = linesOf(verification, kind)
    return lines.length === 0 ? [] : ['', `${kind}:`, ...lines.map((line) => `  ${line}`)]
  })
  return [overview, ...lists].join('\n')
}
