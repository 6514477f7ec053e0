import { escapeMarkup } from '../printing.js'
import { describe, KINDS, latenciesOf, MEANING, type Kind, type Verification } from './verification.js'

/** The result as JUnit XML: a test case for each kind of difference. */
export function junitReport(verification: Verification): string {
  const { label, refused, summary } = verification
  const failures = KINDS.filter((kind) => summary[kind] > 0).length
  const suite = attributes({ name: `mayfly load verify ${label}`, tests: KINDS.length, failures, errors: 0 })
  const values = {
    expected: summary.expected,
    found: summary.found,
    refused,
    ...latencyProperties(verification),
  }
  const properties = Object.entries(values).map(
    ([name, value]) => `      <property${attributes({ name, value })}/>`,
  )
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ tests: KINDS.length, failures })}>`,
    `  <testsuite${suite}>`,
    '    <properties>',
    ...properties,
    '    </properties>',
    ...KINDS.map((kind) => testCase(verification, kind)),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function testCase({ label, summary, differences }: Verification, kind: Kind): string {
  const about = attributes({ classname: `mayfly.${label}`, name: `no mail was ${MEANING[kind]}` })
  const count = summary[kind]
  if (count === 0) return `    <testcase${about}/>`
  const more = count - differences[kind].length
  const lines = [...differences[kind].map(describe), ...(more > 0 ? [`… and ${more} more`] : [])]
  const failure = attributes({ type: kind, message: `${count} ${kind}` })
  return [
    `    <testcase${about}>`,
    `      <failure${failure}>${escaped(lines.join('\n'))}</failure>`,
    '    </testcase>',
  ].join('\n')
}

function latencyProperties(verification: Verification): Record<string, number> {
  const entries = latenciesOf(verification).flatMap(([name, ms]) =>
    Object.entries(ms ?? {}).map(([quantile, value]) => [`${name}, ${quantile}, ms`, Number(value)] as const),
  )
  return Object.fromEntries(entries)
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
    .join('')
}

/** Text without the characters that XML 1.0 does not allow (section 2.2). */
function escaped(text: string): string {
  const allowed = text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
  return escapeMarkup(allowed)
}
