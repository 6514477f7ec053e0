import { facts, oneLine } from '../printing.js'
import {
  describe,
  KINDS,
  latenciesOf,
  MEANING,
  resultOf,
  type Kind,
  type Verification,
} from './verification.js'

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
