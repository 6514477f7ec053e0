import { escapeMarkup, harmless } from '../printing.js'
import {
  describe,
  KINDS,
  latenciesOf,
  MEANING,
  resultOf,
  type Kind,
  type UsageJson,
  type Verification,
} from './verification.js'

/*
 * The result as an HTML page without scripts and without other resources, with charts as SVG.
 */

const STYLE = `
:root{color-scheme:light dark;--line:#8886;--soft:#8882;--good:#2a9d62;--bad:#d1453b;--bar:#3b82d6}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1.5rem}
h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
.result{font-weight:600;padding:.6rem 1rem;border-left:.4rem solid var(--good);background:var(--soft)}
.result::first-letter{text-transform:uppercase}
.result.failed{border-color:var(--bad)}
svg{width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:currentColor}
.bar{fill:var(--bar)}.bad{fill:var(--bad)}.good{fill:var(--good)}.axis{stroke:var(--line)}
li{font:.9em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
`

export function htmlPage(verification: Verification): string {
  const { label, manifest, passed, refused, summary, usage } = verification
  const rows = [
    ['expected', summary.expected, 'accepted lines of the manifest'],
    ['refused', refused, 'lines that were not accepted, and so not expected'],
    ['found', summary.found, 'sent and received'],
    ...KINDS.map((kind) => [kind, summary[kind], MEANING[kind]] as const),
  ] as const
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(`Load run ${label}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(`Load run ${label}`)}</h1>
<p class="result${passed ? '' : ' failed'}">${escaped(resultOf(verification))}</p>
<p>Manifest: <code>${escaped(manifest)}</code></p>
<h2>Mail</h2>
${barChart(
  'Mails by result',
  [
    { name: 'found', value: summary.found, style: 'good' },
    ...KINDS.map((kind) => ({ name: kind, value: summary[kind], style: 'bad' as const })),
  ],
  '',
)}
<table>
<tr><th>Kind</th><th class="number">Mails</th><th>Meaning</th></tr>
${rows.map(([name, count, meaning]) => `<tr><td>${name}</td><td class="number">${count}</td><td>${meaning}</td></tr>`).join('\n')}
</table>
<h2>Latency</h2>
${latencyPart(verification)}
${usage === null || usage.timeline.length === 0 ? '' : `<h2>Mails over time</h2>\n${timelineChart(usage)}`}
${KINDS.map((kind) => differencesPart(verification, kind)).join('')}</body>
</html>
`
}

function latencyPart(verification: Verification): string {
  const measured = latenciesOf(verification).flatMap(([name, ms]) => (ms === null ? [] : [{ name, ms }]))
  if (measured.length === 0)
    return '<p>There are no figures: usage is not counted, or nothing is counted yet.</p>'
  return measured
    .map(({ name, ms }) => {
      const bars = (['p50', 'p95', 'p99', 'max'] as const).map((quantile) => ({
        name: quantile,
        value: ms[quantile],
        style: 'bar' as const,
      }))
      return barChart(`From ${name}`, bars, ' ms')
    })
    .join('\n')
}

interface Bar {
  name: string
  value: number
  style: 'bar' | 'good' | 'bad'
}

const WIDTH = 720
const ROW = 24
const NAME_WIDTH = 100
const VALUE_WIDTH = 90

function barChart(title: string, bars: readonly Bar[], unit: string): string {
  const max = Math.max(...bars.map(({ value }) => value), 1e-9)
  const height = ROW * (bars.length + 1)
  const rows = bars.map(({ name, value, style }, index) => {
    const top = ROW * (index + 1)
    const width = Math.round(((WIDTH - NAME_WIDTH - VALUE_WIDTH) * value * 10) / max) / 10
    return (
      `<text x="0" y="${top + 16}">${escaped(name)}</text>` +
      `<rect class="${style}" x="${NAME_WIDTH}" y="${top + 4}" width="${width}" height="16"/>` +
      `<text x="${NAME_WIDTH + width + 6}" y="${top + 16}">${value}${unit}</text>`
    )
  })
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">
<text x="0" y="14">${escaped(title)}</text>
${rows.join('\n')}
</svg>`
}

const TIMELINE_HEIGHT = 120

function timelineChart({ timeline }: UsageJson): string {
  const max = Math.max(...timeline.map(({ mails }) => mails))
  const width = WIDTH / timeline.length
  const bars = timeline.map(({ mails }, index) => {
    const height = Math.round((TIMELINE_HEIGHT * mails * 10) / max) / 10
    const x = Math.round(index * width * 100) / 100
    return `<rect class="bar" x="${x}" y="${20 + TIMELINE_HEIGHT - height}" width="${Math.max(width - 1, 0.5).toFixed(2)}" height="${height}"/>`
  })
  const [first, last] = [timeline[0], timeline.at(-1)]
  // Long runs have longer buckets.
  const seconds = (Date.parse(first?.to ?? '') - Date.parse(first?.from ?? '')) / 1_000
  const bottom = 20 + TIMELINE_HEIGHT
  return `<svg viewBox="0 0 ${WIDTH} ${bottom + 24}" role="img" aria-label="Mails over time">
<text x="0" y="14">at most ${max} mails in ${seconds} s</text>
${bars.join('\n')}
<line class="axis" x1="0" y1="${bottom}" x2="${WIDTH}" y2="${bottom}"/>
<text x="0" y="${bottom + 16}">${escaped(first?.from ?? '')}</text>
<text x="${WIDTH}" y="${bottom + 16}" text-anchor="end">${escaped(last?.to ?? '')}</text>
</svg>`
}

function differencesPart({ summary, differences }: Verification, kind: Kind): string {
  const shown = differences[kind]
  if (shown.length === 0) return ''
  const more = summary[kind] - shown.length
  return `<h2>${kind}</h2>
<p>${summary[kind]} ${MEANING[kind]}${more > 0 ? `; the first ${shown.length}` : ''}:</p>
<ul>
${shown.map((difference) => `<li>${escaped(describe(difference))}</li>`).join('\n')}
</ul>
`
}

function escaped(text: string): string {
  return escapeMarkup(harmless(text))
}

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
    `      <failure${failure}>${escapedXml(lines.join('\n'))}</failure>`,
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
