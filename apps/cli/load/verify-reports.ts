import { BUILD_INFO } from '#libs/runtime/process/build-info.js'
import { escapeMarkup, harmless } from '../printing.js'
import {
  aboutOf,
  KINDS,
  latenciesOf,
  linesOf,
  MEANING,
  resultOf,
  type Kind,
  type Verification,
} from './verification.js'

/*
 * The result as an HTML page without scripts and without other resources, with charts as SVG, and as JUnit XML.
 */

/* The colors are those of the console (apps/console/tokens.css). */
const STYLE = `
:root{color-scheme:light dark;--line:#dde3e3;--soft:#f6f8f8;--muted:#55625f;--good:#116b2f;--bad:#b3261e;--bar:#0f766e}
@media(prefers-color-scheme:dark){:root{--line:#2b393c;--soft:#172124;--muted:#a3b1af;--good:#7fd49a;--bad:#ff9a90;--bar:#5eead4}body{background:#10181a;color:#e6edec}}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1.5rem}
h1{letter-spacing:-.01em;margin-bottom:.25rem}
h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
p.facts,td.about{color:var(--muted)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
td.number{text-align:right;font-variant-numeric:tabular-nums}
td.chart{width:35%}
.result{font-weight:600;padding:.6rem 1rem;border-left:4px solid var(--good);border-radius:6px;background:var(--soft)}
.result::first-letter{text-transform:uppercase}
.result.failed{border-color:var(--bad)}
svg{display:block;width:100%;height:1rem;fill:var(--bar)}
svg.time{height:8rem;border-bottom:1px solid var(--line)}
.bad{fill:var(--bad)}.good{fill:var(--good)}
li{font:.9em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
`

/** A row of a table, whose value is also a bar. */
interface Row {
  name: string
  value: number
  about: string
  style?: 'good' | 'bad'
}

/** `at` is the time of the report. */
export function htmlPage(verification: Verification, at: Date): string {
  const { label, manifest, passed, refused, summary } = verification
  const title = escaped(`Load run ${label.replace(/^run:/, '')}`)
  const mails: Row[] = [
    { name: 'expected', value: summary.expected, about: 'accepted lines of the manifest' },
    { name: 'refused', value: refused, about: 'lines that were not accepted, and so not expected' },
    { name: 'found', value: summary.found, about: 'sent and received', style: 'good' },
    ...KINDS.map((kind) => ({
      name: kind,
      value: summary[kind],
      about: aboutOf(summary, kind),
      style: 'bad' as const,
    })),
  ]
  const latencies = latenciesOf(verification).map(([name, ms]) => {
    const rows = Object.entries(ms).map(([quantile, value]) => ({ name: quantile, value, about: 'ms' }))
    return `<h3>From ${name}</h3>\n${tableOf(rows)}`
  })
  const noLatencies = '<p>There are no figures: usage is not counted, or nothing is counted yet.</p>'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${title}</h1>
<p class="result${passed ? '' : ' failed'}">${escaped(resultOf(verification))}</p>
<p class="facts">Label <code>${escaped(label)}</code>, manifest <code>${escaped(manifest)}</code>, made ${at.toISOString()} by Mayfly ${BUILD_INFO.version}</p>
<h2>Mail</h2>
${tableOf(mails, summary.expected)}
<h2>Latency</h2>
${latencies.join('\n') || noLatencies}
${timelinePart(verification)}
${KINDS.map((kind) => differencesPart(verification, kind)).join('')}</body>
</html>
`
}

/** With a `whole`, also the share of each value in it. */
function tableOf(rows: readonly Row[], whole = 0): string {
  const max = Math.max(...rows.map(({ value }) => value), 1e-9)
  const texts = rows.map(({ name, value, about, style = '' }) => {
    const bar = `<svg viewBox="0 0 100 1" preserveAspectRatio="none"><rect class="${style}" width="${rounded((100 * value) / max)}" height="1"/></svg>`
    const share = whole === 0 ? '' : `<td class="number">${rounded((100 * value) / whole)} %</td>`
    return `<tr><th>${name}</th><td class="number">${value}</td>${share}<td class="about">${about}</td><td class="chart">${bar}</td></tr>`
  })
  return `<table>\n${texts.join('\n')}\n</table>`
}

/** A bar for each part of the run. Long runs have longer parts. */
function timelinePart({ usage }: Verification): string {
  const timeline = usage?.timeline ?? []
  const [first, last] = [timeline[0], timeline.at(-1)]
  if (first === undefined || last === undefined) return ''
  const max = Math.max(...timeline.map(({ mails }) => mails))
  const bars = timeline.map(({ mails }, index) => {
    const height = rounded((100 * mails) / max)
    return `<rect x="${index}" y="${rounded(100 - height)}" width="0.9" height="${height}"/>`
  })
  const seconds = (Date.parse(first.to) - Date.parse(first.from)) / 1_000
  return `<h2>Mails over time</h2>
<p>From ${escaped(first.from)} to ${escaped(last.to)}, at most ${max} mails in ${seconds} s:</p>
<svg class="time" viewBox="0 0 ${timeline.length} 100" preserveAspectRatio="none" role="img" aria-label="Mails over time">
${bars.join('\n')}
</svg>`
}

/** To two decimal places. */
function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

function differencesPart(verification: Verification, kind: Kind): string {
  const lines = linesOf(verification, kind)
  if (lines.length === 0) return ''
  const items = lines.map((line) => `<li>${escaped(line)}</li>`)
  return `<h2>${kind}</h2>\n<p>${verification.summary[kind]} ${aboutOf(verification.summary, kind)}:</p>\n<ul>\n${items.join('\n')}\n</ul>\n`
}

function escaped(text: string): string {
  return escapeMarkup(harmless(text))
}

/** The result as JUnit XML: a test case for each kind of difference. */
export function junitReport(verification: Verification): string {
  const { label, refused, summary } = verification
  const { expected, found } = summary
  const tests = KINDS.length
  const failures = KINDS.filter((kind) => summary[kind] > 0).length
  const latencies = latenciesOf(verification).flatMap(([name, ms]) =>
    Object.entries(ms).map(([quantile, value]) => [`${name}, ${quantile}, ms`, value] as const),
  )
  const properties = [...Object.entries({ expected, found, refused }), ...latencies]
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ tests, failures })}>`,
    `  <testsuite${attributes({ name: `mayfly load verify ${label}`, tests, failures, errors: 0 })}>`,
    '    <properties>',
    ...properties.map(([name, value]) => `      <property${attributes({ name, value })}/>`),
    '    </properties>',
    ...KINDS.map((kind) => testCase(verification, kind)),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function testCase(verification: Verification, kind: Kind): string {
  const { label, summary } = verification
  const about = attributes({ classname: `mayfly.${label}`, name: `no mail was ${MEANING[kind]}` })
  if (summary[kind] === 0) return `    <testcase${about}/>`
  const failure = attributes({ type: kind, message: `${summary[kind]} ${kind}` })
  const text = escapedXml(linesOf(verification, kind).join('\n'))
  return `    <testcase${about}>\n      <failure${failure}>${text}</failure>\n    </testcase>`
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapedXml(String(value))}"`)
    .join('')
}

/** Text without the characters that XML 1.0 does not allow (section 2.2). */
function escapedXml(text: string): string {
  const allowed = text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
  return escapeMarkup(allowed)
}
