const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text of a cell or a line. It may come from a sender, so it must not control the terminal. */
export function oneLine(text: string): string {
  return harmless(text.replaceAll(/\s+/g, ' '))
}

/** The same for text with several lines. Control characters and bidirectional controls are replaced. */
export function harmless(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u2028\u2029\p{Bidi_Control}]/gu, '\ufffd')
}

/** Text of an HTML or XML element or attribute. */
export function escapeMarkup(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}

type Value = string | number | boolean | null | undefined

/** A property of the API's JSON. */
type Property = Value | readonly Value[] | Readonly<Record<string, Value>>

/** An array has commas, and an object such as labels is `name:value` pairs. Empty if there is no value. */
function textOf(property: Property): string {
  if (Array.isArray(property)) return property.join(', ')
  if (typeof property !== 'object' || property === null) return String(property ?? '')
  const pairs = Object.entries(property).map(([name, value]) => `${name}:${String(value)}`)
  return pairs.join(' ')
}

/** A table with column names; each column is as wide as its widest cell. A cell without a value has a hyphen. */
export function table(names: readonly string[], rows: readonly (readonly Property[])[]): string {
  const cells = rows.map((row) => row.map((property) => oneLine(textOf(property)) || '-'))
  const lines = [names.map((name) => name.toUpperCase()), ...cells]
  // Not `Math.max(...)`: a list may have more rows than a function can have arguments.
  const widths = names.map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, line[column]?.length ?? 0), 0),
  )
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** One property per line, with spaces for the underscores in its name. Properties without a value are left out. */
export function facts(properties: Readonly<Record<string, Property>>): string {
  const known = Object.entries(properties)
    .map(([name, property]) => [name.replaceAll('_', ' '), oneLine(textOf(property))] as const)
    .filter(([, text]) => text !== '')
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, text]) => `${name.padEnd(width)}  ${text}`).join('\n')
}
