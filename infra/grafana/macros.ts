/*
 * Expands the SQL of a panel: Grafana replaces variables, and its ClickHouse data source (4.20) replaces macros. This
 * does the same for the forms that these dashboards use, so that their SQL can run without Grafana. It throws on unknown
 * macros.
 */

/** The time range, the interval that follows from the width of a panel, and the variables of a dashboard. */
export interface Shown {
  from: Date
  to: Date
  intervalS: number
  /** Null if all values are selected. */
  variables: Readonly<Record<string, readonly string[] | null>>
}

/** Macro names and arguments: `$__name`, `$__name(t.column)`. */
const MACRO = /\$__(\w+)(?:\(([\w.]+)\))?/g
/** A condition with at most one pair of parentheses in it, and the variable that it is about. */
const CONDITIONAL = /\$__conditionalAll\(((?:[^()]|\([^()]*\))*), \$(\w+)\)/g
const VARIABLE = /\$\{(\w+):singlequote\}/g

export function expanded(sql: string, shown: Shown): string {
  return sql
    .replaceAll(CONDITIONAL, (_, condition: string, name: string) =>
      valuesOf(shown, name) === null ? '1=1' : condition,
    )
    .replaceAll(VARIABLE, (_, name: string) => (valuesOf(shown, name) ?? []).map(quoted).join(','))
    .replaceAll(MACRO, (text, name: string, column?: string) => macro(text, name, column, shown))
}

function macro(text: string, name: string, column: string | undefined, shown: Shown): string {
  const { from, to, intervalS } = shown
  if (name === 'interval_s' && column === undefined) return String(intervalS)
  if (name === 'timeFilter' && column !== undefined) {
    return `${column} >= ${seconds(from)} AND ${column} <= ${seconds(to)}`
  }
  if (name === 'timeInterval' && column !== undefined) {
    return `toStartOfInterval(toDateTime(${column}), INTERVAL ${intervalS} second)`
  }
  throw new Error(`unknown macro ${text}`)
}

function valuesOf({ variables }: Shown, name: string): readonly string[] | null {
  const values = variables[name]
  if (values === undefined) throw new Error(`unknown variable ${name}`)
  return values
}

function seconds(at: Date): string {
  return `toDateTime(${Math.floor(at.getTime() / 1_000)})`
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", "\\'")}'`
}
