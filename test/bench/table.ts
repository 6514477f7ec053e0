import type { Finding, FigureTarget } from './figure.js'

const COLUMNS = ['figure', 'measured', 'baseline', 'ratio', 'target', 'reached', 'spread'] as const

/** The findings as a Markdown table, with notes below. */
export function findingsTable(findings: readonly Finding[]): string {
  const rows = findings.map((finding, index) => cellsOf(finding, noteNumber(findings, index)))
  const notes = findings.flatMap(({ note }) => (note === null ? [] : [note]))
  return tableOf(COLUMNS, rows) + notes.map((note, at) => `${at + 1}. ${note}\n`).join('')
}

/** A Markdown table with aligned columns, followed by an empty line. */
export function tableOf(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map((column, at) =>
    Math.max(column.length, ...rows.map((row) => row[at]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [line(columns), rule, ...rows.map(line), '', ''].join('\n')
}

function cellsOf(finding: Finding, note: number | null): string[] {
  const { name, unit, value, baseline, ratio, target, isMet, spread, rounds } = finding
  return [
    note === null ? name : `${name} (${note})`,
    `${formatted(value)} ${unit}`,
    baseline === null ? '' : `${formatted(baseline.value)} (${baseline.name})`,
    ratio === null ? '' : ratio.toFixed(2),
    target === null ? '' : targetText(target, ratio === null ? ` ${unit}` : ' ×'),
    isMet === null ? '' : isMet ? 'yes' : 'no',
    rounds.length > 1 ? `${Math.round(spread * 100)} %` : '',
  ]
}

function noteNumber(findings: readonly Finding[], index: number): number | null {
  if (findings[index]?.note === null) return null
  return findings.slice(0, index + 1).filter(({ note }) => note !== null).length
}

function targetText(target: FigureTarget, unit: string): string {
  return 'atLeast' in target ? `≥ ${target.atLeast}${unit}` : `≤ ${target.atMost}${unit}`
}

export function formatted(value: number): string {
  if (value >= 100) return Math.round(value).toString()
  return value.toPrecision(3)
}
